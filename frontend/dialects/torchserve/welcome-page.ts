/** Whether a browser asks for `/`: TorchServe's clients, which get its 405, do not name HTML. */
export function wantsPage(method: string, accept: string): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/i.test(accept)
}

export const WELCOME_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['content-type', 'text/html; charset=utf-8'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
]

const DOCS = 'https://github.com/torchserve-ts/torchserve-ts'

/** The same on every listener, and for everybody: it says nothing of models and settings. */
export const WELCOME_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>torchserve-ts</title>
<h1>A torchserve-ts server</h1>
<p>This address is an API for programs.</p>
<ul>
<li><a href="/api-description">API description</a> of this port (OpenAPI)</li>
<li><a href="${DOCS}/blob/main/docs/protocols.md">The APIs</a>, and <a href="${DOCS}#readme">the documentation</a></li>
</ul>
`
