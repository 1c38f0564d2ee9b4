import type { ComponentChildren, JSX } from 'preact'

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
