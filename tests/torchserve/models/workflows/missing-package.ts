/** Needs a package that is not installed, as a workflow of TorchServe's tests needs one of Python's. */
const missing = 'a-package-that-nobody-installed'
await import(missing)

export function preprocessing(): never {
  throw new Error('Never loaded')
}
