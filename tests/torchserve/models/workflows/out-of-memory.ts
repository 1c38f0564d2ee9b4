/** Wants more memory than there is when it loads. */
export function initialize(): void {
  throw new RangeError('Array buffer allocation failed')
}

export function preprocessing(): never {
  throw new Error('Never loaded')
}
