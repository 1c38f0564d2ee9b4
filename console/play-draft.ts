import type { OverviewEvent } from '../common/server-events.ts'
import { reachable } from './api.ts'
import type { PlayApi, PlayModel } from './play-apis.ts'
import type { CopiedRequest } from './play-copies.ts'
import { copiedCall } from './play-grpcurl.ts'

/** What the form of the playground holds. */
export interface Draft {
  readonly model: PlayModel
  readonly api: PlayApi
  readonly body: string
  readonly file: File | undefined
  /** Undefined: the one that the user signed in with. */
  readonly token: string | undefined
}

export function typeOf({ api, file }: Draft): string {
  return file === undefined ? api.contentType : 'application/octet-stream'
}

export function bodyOf({ body, file }: Draft): BodyInit {
  return file ?? body
}

/** The request to the ports that serve its API. */
export function copied(draft: Draft, { server }: OverviewEvent, hasToken: boolean): CopiedRequest {
  const { api, model, body, file, token } = draft
  const address = server.listening.find(({ name }) => /^Inference.*REST/.test(name))?.address
  const base =
    address === undefined || !address.startsWith('http') ? location.origin : reachable(address).origin
  return {
    url: `${base}${api.path(model)}`,
    contentType: typeOf(draft),
    body: file === undefined ? body : { file: file.name },
    needsToken: hasToken || token !== undefined,
    call: copiedCall(api, model, file === undefined ? body : '', server),
  }
}
