/** Whether a browser asks for `/`: TorchServe's clients, which get its 405, do not name HTML. */
export function wantsPage(method: string, accept: string): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/i.test(accept)
}

export const WELCOME_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['content-type', 'text/html; charset=utf-8'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
]

const DOCS = 'https://github.com/torchserve-ts/torchserve-ts'

const CONSOLE = '<li><a href="/console">Console</a>: models, open requests and the log of this server</li>\n'

/** The same for everybody: it says nothing of models and settings. */
export function welcomePage(hasConsole: boolean): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>torchserve-ts</title>
<h1>A torchserve-ts server</h1>
<p>This address is an API for programs.</p>
<ul>
${hasConsole ? CONSOLE : ''}<li><a href="/api-description">API description</a> of this port (OpenAPI)</li>
<li><a href="${DOCS}/blob/main/docs/protocols.md">The APIs</a>, and <a href="${DOCS}#readme">the documentation</a></li>
</ul>
`
}
