import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { shellWord } from '../common/curl-lines.ts'
import { Choice } from './elements.tsx'

/** The request as a program, to copy. */
export function CopyAs({ request }: { request: CopiedRequest }): JSX.Element {
  const [chosen, choose] = useState('')
  const [message, setMessage] = useState('')
  const offered = copies(request)
  const { title, program } = offered.find((each) => each.title === chosen) ?? offered[0]
  const copy = (): void =>
    void navigator.clipboard.writeText(program).then(
      () => setMessage('Copied'),
      () => setMessage('The browser does not allow copying: select the text'),
    )
  return (
    <details>
      <summary>Copy as …</summary>
      <p class="bar">
        <Choice
          id="copy-as"
          label="Language"
          value={title}
          options={offered.map((each) => [each.title, each.title])}
          onChoose={(next) => {
            choose(next)
            setMessage('')
          }}
        />
        {isSecureContext && (
          <button type="button" onClick={copy}>
            Copy
          </button>
        )}
        <span role="status">{message}</span>
      </p>
      <pre class="program" tabIndex={0}>
        {program}
      </pre>
    </details>
  )
}

/** A request as somebody would send it from elsewhere. */
export interface CopiedRequest {
  readonly url: string
  readonly contentType: string
  /** Text, or the name of a file. */
  readonly body: string | { readonly file: string }
  readonly needsToken: boolean
}

/** Programs that send a request and show its answer as it arrives. The token stays out of them. */
export function copies(request: CopiedRequest): [Copy, ...Copy[]] {
  return [
    { title: 'curl', program: curl(request) },
    { title: 'TypeScript', program: typescript(request) },
    { title: 'Python', program: python(request) },
  ]
}

export interface Copy {
  readonly title: string
  readonly program: string
}

function curl({ url, contentType, body, needsToken }: CopiedRequest): string {
  const data =
    typeof body === 'string' ? `--data-raw ${shellWord(body)}` : `--data-binary @${shellWord(body.file)}`
  const token = needsToken ? ' -H "Authorization: Bearer $TOKEN"' : ''
  return `curl -N${token} -H ${shellWord(`content-type: ${contentType}`)} ${data} ${shellWord(url)}`
}

function typescript({ url, contentType, body, needsToken }: CopiedRequest): string {
  const lines = [
    ...(typeof body === 'string' ? [] : [`import { readFileSync } from 'node:fs'`, '']),
    `const response = await fetch(${text(url)}, {`,
    `  method: 'POST',`,
    `  headers: {`,
    `    'content-type': ${text(contentType)},`,
    ...(needsToken ? ['    authorization: `Bearer ${process.env.TOKEN}`,'] : []),
    `  },`,
    `  body: ${typeof body === 'string' ? text(body) : `readFileSync(${text(body.file)})`},`,
    `})`,
    `for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {`,
    `  process.stdout.write(piece)`,
    `}`,
  ]
  return lines.join('\n')
}

function python({ url, contentType, body, needsToken }: CopiedRequest): string {
  const token = needsToken ? `, "authorization": "Bearer " + os.environ["TOKEN"]` : ''
  const lines = [
    ...(needsToken ? ['import os', ''] : []),
    `import requests`,
    ``,
    `with requests.post(`,
    `    ${text(url)},`,
    `    headers={"content-type": ${text(contentType)}${token}},`,
    `    data=${typeof body === 'string' ? `${text(body)}.encode()` : `open(${text(body.file)}, "rb")`},`,
    `    stream=True,`,
    `) as response:`,
    `    for piece in response.iter_content(None):`,
    `        print(piece.decode(), end="", flush=True)`,
  ]
  return lines.join('\n')
}

/** A literal that JavaScript and Python read alike. */
function text(value: string): string {
  return JSON.stringify(value)
}
