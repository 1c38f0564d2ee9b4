import type { ComponentChildren, JSX } from 'preact'

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
