import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Choice } from './fields.tsx'
import { copies, type CopiedRequest } from './play-copies.ts'

/** The request as a program, to copy. */
export function CopyAs({ request }: { request: CopiedRequest }): JSX.Element {
  const [chosen, choose] = useState('')
  const [told, setTold] = useState('')
  const offered = copies(request)
  const { title, program } = offered.find((each) => each.title === chosen) ?? offered[0]
  const copy = (): void =>
    void navigator.clipboard.writeText(program).then(
      () => setTold('Copied'),
      () => setTold('The browser does not let this page copy: select the text'),
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
            setTold('')
          }}
        />
        {isSecureContext && (
          <button type="button" onClick={copy}>
            Copy
          </button>
        )}
        <span role="status">{told}</span>
      </p>
      <pre class="program" tabIndex={0}>
        {program}
      </pre>
    </details>
  )
}
