/** One line of the product made wrong, and the tests that have to notice. */
export interface Mutant {
  /** What is wrong, in a few words; unique. */
  readonly name: string
  /** The file of the product, from the repository's root. */
  readonly file: string
  /** Text of the file that occurs in it exactly once. */
  readonly find: string
  readonly replace: string
  /** Test files, from the repository's root. */
  readonly tests: readonly string[]
  /**
   * Runs only the tests whose full name matches this regular expression (jest's -t). Default: all of the
   * files.
   */
  readonly title?: string
}

/** The file's text with the mutant in it. @throws Error when its `find` does not occur exactly once */
export function mutated(mutant: Mutant, text: string): string {
  const times = text.split(mutant.find).length - 1
  if (times !== 1)
    throw new Error(
      `${mutant.file} must contain the mutant's text exactly once, but contains it ${times} times`,
    )
  return text.replace(mutant.find, () => mutant.replace)
}
