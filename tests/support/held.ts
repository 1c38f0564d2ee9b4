/** A promise that the test settles: `opened` resolves with what `open` is called with. */
export interface Held<T> {
  readonly opened: Promise<T>
  open(value: T): void
}

export function heldBack<T = void>(): Held<T> {
  let open!: (value: T) => void
  const opened = new Promise<T>((resolve) => (open = resolve))
  return { opened, open }
}
