import type { ComponentChildren, JSX } from 'preact'

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
