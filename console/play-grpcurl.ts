import { shellWord } from '../common/curl-lines.ts'
import type { OverviewEvent } from '../common/server-events.ts'
import { reachable, reasonOf } from './api.ts'
import type { PlayApi, PlayModel } from './play-apis.ts'

/** A request as somebody would send it over gRPC. */
export interface CopiedCall {
  readonly address: string
  readonly hasTls: boolean
  /** `package.Service/Method` */
  readonly method: string
  /** The message as JSON, or why there is none. */
  readonly message: { readonly json: string } | { readonly problem: string }
}

/** Undefined: the API has no gRPC, or no listener for it is open. */
export function copiedCall(
  { grpc }: PlayApi,
  model: PlayModel,
  body: string,
  { listening, grpcTls }: OverviewEvent['server'],
): CopiedCall | undefined {
  const listener = listening.find(({ name }) => grpc?.listeners.includes(name))
  if (grpc === undefined || listener === undefined) return undefined
  const { hostname, port } = reachable(`http://${listener.address}`)
  const call = { address: `${hostname}:${port || '80'}`, hasTls: grpcTls, method: grpc.method }
  try {
    return { ...call, message: { json: JSON.stringify(grpc.message(model, body)) } }
  } catch (thrown) {
    return { ...call, message: { problem: reasonOf(thrown) } }
  }
}

/** The command; the server's reflection tells it the messages. */
export function grpcurl(call: CopiedCall, file: string | undefined, needsToken: boolean): string {
  const { address, hasTls, method, message } = call
  if ('problem' in message) return `# ${message.problem}`
  const flags = [
    ...(hasTls ? [] : ['-plaintext']),
    ...(needsToken ? ['-H "authorization: Bearer $TOKEN"'] : []),
  ]
  const line = (data: string): string =>
    ['grpcurl', ...flags, `-d ${data}`, shellWord(address), shellWord(method)].join(' ')
  if (file === undefined) return line(shellWord(message.json))
  const [before, after] = [message.json.slice(0, -DATA_END.length), DATA_END]
  const written = `printf %s ${shellWord(before)}; base64 < ${shellWord(file)} | tr -d '\\n'; printf %s ${shellWord(after)}`
  return `{ ${written}; } | ${line('@')}`
}

/** How the JSON of a message with data ends, where a file's data come in. */
const DATA_END = '"}}'
