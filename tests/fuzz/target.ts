import { ServeError } from '../../common/errors.ts'

/** A parser of what strangers, archives or handlers send. */
export interface Target {
  readonly name: string
  /** Inputs that mean something; the files of corpus/<name> are added to them. */
  readonly seeds: () => readonly (Buffer | string)[] | Promise<readonly (Buffer | string)[]>
  /** Words that are inserted now and then. */
  readonly words?: readonly string[]
  /**
   * Parses one input. Refusing it with a ServeError is right; any other exception is a finding, and so is a
   * promise that takes longer than a second.
   */
  readonly run: (input: Buffer) => void | Promise<void>
}

/** Runs a target on one input. @throws what is a finding */
export async function tryInput({ run }: Target, input: Buffer): Promise<void> {
  try {
    await run(input)
  } catch (error) {
    if (!(error instanceof ServeError) || error.code === 'INTERNAL') throw error
  }
}

/** @throws Error with both values when they differ */
export function mustEqual(what: string, a: unknown, b: unknown): void {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)]
  if (left !== right) throw new Error(`${what}: ${left?.slice(0, 200)} but ${right?.slice(0, 200)}`)
}
