import { Metadata } from '@grpc/grpc-js'
import type { ReplyHead } from '../../jobs/reply-sink.ts'

/** HTTP status that the handler set; absent when it is 200. */
const STATUS_KEY = 'ts-response-status'
/** Content type that the handler set; gRPC needs `content-type` for itself. */
const CONTENT_TYPE_KEY = 'ts-response-content-type'

/** Names that HTTP/2 or gRPC keep for themselves; sending one would break the call. */
const RESERVED = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const LEGAL_NAME = /^[0-9a-z_.-]+$/
const LEGAL_VALUE = /^[ -~]*$/

/**
 * What the handler said beside its body, as initial metadata: status, content type, and its headers as far as
 * gRPC can carry them (ASCII, no reserved or binary names; others are left out). Undefined when it said
 * nothing.
 */
export function replyMetadata(head: ReplyHead): Metadata | undefined {
  if (head.status === 200 && head.contentType === undefined && isEmpty(head.headers)) return undefined
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(head.headers)) {
    const key = name.toLowerCase()
    if (isCarried(key, value)) metadata.set(key, value)
  }
  if (head.status !== 200) metadata.set(STATUS_KEY, String(head.status))
  if (head.contentType !== undefined && LEGAL_VALUE.test(head.contentType)) {
    metadata.set(CONTENT_TYPE_KEY, head.contentType)
  }
  return metadata
}

function isEmpty(headers: Readonly<Record<string, string>>): boolean {
  for (const _ in headers) return false
  return true
}

function isCarried(key: string, value: string): boolean {
  return (
    LEGAL_NAME.test(key) &&
    LEGAL_VALUE.test(value) &&
    !key.startsWith('grpc-') &&
    !key.endsWith('-bin') &&
    !RESERVED.has(key)
  )
}
