import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** A control with its label. */
export function Field(props: { id: string; label: string; children: ComponentChildren }): JSX.Element {
  return (
    <span class="field">
      <label for={props.id}>{props.label}</label>
      {props.children}
    </span>
  )
}

/** A text to search for. */
export function Search(props: {
  id: string
  label: string
  placeholder: string
  value: string
  onText: (text: string) => void
}): JSX.Element {
  const { id, label, onText, ...input } = props
  return (
    <Field id={id} label={label}>
      <input id={id} type="search" {...input} onInput={(event) => onText(event.currentTarget.value)} />
    </Field>
  )
}

/** One of some values. `options`: each value with its words. */
export function Choice(props: {
  id: string
  label: string
  value: string
  options: readonly (readonly [value: string, words: string])[]
  onChoose: (value: string) => void
}): JSX.Element {
  const { id, label, value, options, onChoose } = props
  return (
    <Field id={id} label={label}>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([each, words]) => (
          <option value={each}>{words}</option>
        ))}
      </select>
    </Field>
  )
}

/** A table that scrolls by itself where the page is too narrow for it, with the keyboard too. */
export function ScrollTable(props: {
  /** What the rows are. */
  label: string
  columns: readonly string[]
  class?: string
  /** The rows. */
  children: ComponentChildren
}): JSX.Element {
  return (
    <div class={`scroll ${props.class ?? ''}`} tabIndex={0} role="region" aria-label={props.label}>
      <table>
        <thead>
          <tr>
            {props.columns.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  )
}

/** Names with their values, side by side. */
export function Facts({ facts }: { facts: readonly (readonly [string, string])[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const REPOSITORY = 'https://github.com/torchserve-ts/torchserve-ts'

/** A page of the documentation, such as `tls.md`; absent: where it begins. It opens in a tab of its own. */
export function Doc({ page, children }: { page?: string; children: ComponentChildren }): JSX.Element {
  const href = page === undefined ? `${REPOSITORY}#readme` : `${REPOSITORY}/blob/main/docs/${page}`
  return (
    <a href={href} target="_blank" rel="noreferrer">
      {children}
    </a>
  )
}

/** The log, searched. `model`: a `keyOf`. */
export function logLink(model: string | undefined, search: string | undefined): string {
  const params = { ...(model !== undefined && { model }), ...(search !== undefined && { search }) }
  return `#log?${new URLSearchParams(params).toString()}`
}

/** What a click is about to do. */
export interface Question {
  readonly text: string
  /** The word on the button: `Cancel the request`. */
  readonly action: string
  readonly run: () => void
}

/** Asks before something that harms. */
export function Ask({ question, onClose }: { question: Question; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  // Closed by the dialog itself, which gives the focus back to where it was.
  const close = (): void => dialog.current!.close()
  useEffect(() => {
    dialog.current!.showModal()
    // Hidden with its view, it would still keep the user from the rest of the page.
    addEventListener('hashchange', close)
    return () => removeEventListener('hashchange', close)
  }, [])
  const run = (): void => {
    close()
    question.run()
  }
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="question">
      <p id="question">{question.text}</p>
      <div class="actions">
        <button type="button" onClick={close}>
          Go back
        </button>
        <button type="button" class="danger" onClick={run}>
          {question.action}
        </button>
      </div>
    </dialog>
  )
}
