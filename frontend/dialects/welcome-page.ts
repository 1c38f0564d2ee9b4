import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { curlLines, type ModelToAsk } from '../../common/curl-lines.ts'
import { type ListenerKind, parseHost, servesInference, servesManagement } from '../edge/http/page-check.ts'
import type { HttpCall } from '../edge/http/http-call.ts'
import type { ModelStatus } from '../models/operations.ts'
import { openInferenceSettings } from './open-inference/settings.ts'

/** Whether a browser asks for `/`: TorchServe's clients, which get its 405, do not name HTML. */
export function wantsPage(method: string, accept: string): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/i.test(accept)
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { margin: 1.2rem 0 0.2rem; font-size: 1.4rem }
h2 { font-size: 1.1rem }
p { margin: 0 0 0.4rem }
pre { padding: 0.6rem; border: 1px solid #8886; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere }
`

export const WELCOME_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['content-type', 'text/html; charset=utf-8'],
  [
    'content-security-policy',
    `default-src 'none'; frame-ancestors 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  ],
]

const DOCS = 'https://github.com/torchserve-ts/torchserve-ts'
/** More are counted. */
const MAX_MODELS = 50

/**
 * The page of `/` for a person: links, and a command line for each model. Models are told where no token is
 * needed; where one is, the page is the same for everybody.
 */
export function welcomePage(call: HttpCall): string {
  const { listener, settings } = call.state
  const hasConsole = settings.enableConsole && servesManagement(listener)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>torchserve-ts</title>
<style>${STYLE}</style>
<h1>A torchserve-ts server</h1>
<p>${PURPOSES[listener]}</p>
${servesInference(listener) ? howToAsk(call) : ''}<ul>
${hasConsole ? CONSOLE : ''}<li><a href="/api-description">API description</a> of this port (OpenAPI)</li>
<li><a href="${DOCS}/blob/main/docs/protocols.md">The APIs</a>, and <a href="${DOCS}#readme">the documentation</a></li>
</ul>
`
}

const PURPOSES: Readonly<Record<ListenerKind, string>> = {
  inference: 'This address answers requests to models.',
  management: 'This address is the management API: models are registered, scaled and removed here.',
  shared: 'This address answers requests to models, and is the management API.',
  metrics: 'This address has <a href="/metrics">metrics</a> for Prometheus.',
}

const CONSOLE = '<li><a href="/console">Console</a>: models, open requests and the log of this server</li>\n'

function howToAsk(call: HttpCall): string {
  const base = baseOf(call)
  if (!call.state.pages.isOpen) {
    const line = `curl -H 'Authorization: Bearer KEY' -d 'Once upon a time' ${base}/predictions/MODEL`
    return `<p>Requests need a token or key:</p>\n<pre>${escaped(line)}</pre>\n`
  }
  call.authorize('inference')
  const statuses = call.models.statuses()
  if (statuses.length === 0) return '<p>No model is loaded.</p>\n'
  const more = statuses.length - MAX_MODELS
  return [
    ...statuses.slice(0, MAX_MODELS).map((status) => modelSection(status, base)),
    ...(more > 0 ? [`<p>And ${more} more: see <a href="/v1/models">/v1/models</a>.</p>\n`] : []),
  ].join('')
}

function modelSection(status: ModelStatus, base: string): string {
  const { name, version, ready, failure } = status
  const state = failure === undefined ? (ready ? 'ready' : 'loading') : 'failed'
  const lines = curlLines(toAsk(status), base).map(({ line }) => `${escaped(line)}\n`)
  return `<h2>${escaped(name)}</h2>\n<p>Version ${escaped(version)}, ${state}</p>\n<pre>${lines.join('')}</pre>\n`
}

function toAsk(status: ModelStatus): ModelToAsk {
  return { name: status.name, methods: status.methods, inputs: openInferenceSettings(status).inputs }
}

/** As the client reached it. Only a plain name or address gets into a command line for a shell. */
function baseOf({ req }: HttpCall): string {
  const scheme = (req.socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http'
  const { host = '' } = req.headers
  const kind = parseHost(host)?.kind
  const isPlain = kind === 'address' || kind === 'domain'
  return `${scheme}://${isPlain ? host : 'HOST:PORT'}`
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
