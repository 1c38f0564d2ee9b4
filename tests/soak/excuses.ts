/** A time in which requests of a model may fail; it lasts until whoever opened it sets its end. */
export interface Excuse {
  to: number
}

/** Of each model; no request lasts longer than so many of them. */
const KEPT = 10

/** When requests of which model may fail, because something was done to it. */
export class Excuses {
  readonly #ofModel = new Map<string, Excuse[]>()

  open(model: string): Excuse {
    const excuse = { to: Infinity }
    this.#ofModel.set(model, [...(this.#ofModel.get(model) ?? []), excuse].slice(-KEPT))
    return excuse
  }

  isOpen(model: string): boolean {
    return this.has(model, Infinity)
  }

  /** Whether a request of that model, from then until now, has one. */
  has(model: string, from: number): boolean {
    return this.#ofModel.get(model)?.some(({ to }) => to >= from) ?? false
  }
}
