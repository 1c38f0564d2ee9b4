import { Router, type RouterContext } from '@koa/router'
import type { Readable } from 'node:stream'
import { ServeError } from '../../../common/errors.ts'
import { takerOf } from '../../auth/principal.ts'
import type { AuditSubject } from '../../edge/http/audited.ts'
import { bodyStream } from '../../edge/http/body-stream.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { declaredLength, hasBody, mediaType } from '../../edge/http/request-headers.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import { checkArchive } from '../../edge/permitted-archives.ts'
import { ArchiveUploads, archiveOf, type Uploaded } from '../../models/archive-uploads.ts'
import { pinOf } from '../../models/archive-rules.ts'
import { commonHeaders, prettyJson } from './rest-errors.ts'
import { admission, apiDisabled, exchangeOf, managing } from './rest-koa.ts'
import { queryParams, warned } from './rest-management-params.ts'

const UPLOADS_OFF = 'Uploads of archives are off: start the server with enable_archive_upload=true'

/** Uploads of archives to the model store; TorchServe has no such route. */
export function archiveRouter(state: RestState): Router {
  const uploads = new ArchiveUploads(state.settings)
  const router = new Router()
  router.put(
    '/archives/:archive',
    admission('management', true),
    managing('upload archive', (ctx, subject) => upload(uploads, ctx, subject)),
  )
  return router
}

async function upload(uploads: ArchiveUploads, ctx: RouterContext, subject: AuditSubject): Promise<void> {
  const exchange = exchangeOf(ctx)
  const { enableModelApi, enableArchiveUpload } = exchange.state.settings
  const name = ctx.params['archive']!
  subject.url = name
  if (!enableModelApi) throw apiDisabled(ctx)
  if (!enableArchiveUpload) throw new ServeError('API_DISABLED', UPLOADS_OFF)
  const params = queryParams(ctx)
  const sha256 = pinOf(params.text('sha256'))
  params.checkNames()
  checkArchive(archiveOf(name), exchange.principal, 'of this name')
  checkHeaders(exchange)
  const announced = declaredLength(exchange.req)
  const arrival = new Arrival(exchange)
  const uploaded = await uploads.receive({
    name,
    announced: announced === Infinity ? undefined : announced,
    sha256,
    sender: takerOf(exchange.principal),
    open: () => arrival.open(),
  })
  subject.detail = `${uploaded.size} bytes, SHA-256 ${uploaded.sha256}`
  const answer = warned(ctx, params, { ...uploaded, next: nextStep(uploaded) })
  ctx.respond = false
  const { reply, requestId } = exchange
  const headers = [...commonHeaders(requestId, reply.keepsAlive(201)), 'content-type', 'application/json']
  reply.answer(201, headers, Buffer.from(prettyJson(answer)))
}

/** What would be stored is not the archive. @throws ServeError INVALID_ARGUMENT, UNSUPPORTED_ENCODING */
function checkHeaders({ req }: Exchange): void {
  const { headers } = req
  if (!hasBody(req)) throw new ServeError('INVALID_ARGUMENT', 'The body must be the archive.')
  if (headers['content-encoding'] !== undefined)
    throw new ServeError(
      'UNSUPPORTED_ENCODING',
      'Content-Encoding is not supported for an archive; send it as it is',
    )
  if (headers['content-range'] !== undefined)
    throw new ServeError('INVALID_ARGUMENT', 'Content-Range is not supported; send the whole archive')
  if (mediaType(headers['content-type'])?.toLowerCase().startsWith('multipart/') === true)
    throw new ServeError(
      'INVALID_ARGUMENT',
      'A form is not supported: the body must be the archive itself (curl -T FILE)',
    )
}

/** The request to make after it. */
function nextStep({ name, sha256 }: Uploaded): string {
  const archive = archiveOf(name)
  if (archive !== name) return `PUT /archives/${encodeURIComponent(archive)}`
  const query = new URLSearchParams({ url: name, initial_workers: '1', sha256 })
  return `POST /models?${query.toString()}`
}

/** The body on its way, until the client leaves. */
class Arrival {
  readonly #exchange: Exchange
  #body: Readable | undefined
  #hasLeft = false

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    if (!exchange.reply.follow({ cancel: () => this.#leave(), drained: () => undefined })) this.#leave()
  }

  open(): Readable {
    const { downloadTimeout } = this.#exchange.state.settings
    this.#body = bodyStream(this.#exchange, { limitMs: downloadTimeout * 1000, key: 'download_timeout' })
    if (this.#hasLeft) this.#leave()
    return this.#body
  }

  #leave(): void {
    this.#hasLeft = true
    this.#body?.destroy(new ServeError('CANCELLED', 'The client left before the archive was complete'))
  }
}
