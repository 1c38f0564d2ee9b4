/** One instruction: its name and the rest of its line. */
export interface Instruction {
  readonly name: string
  readonly text: string
}

/** A stage of the build, from its FROM to the next one. */
export interface Stage {
  /** What FROM names: an image. */
  readonly base: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

/** What a container of the image starts with. */
export interface Start {
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly folder: string
  readonly command: readonly string[]
  readonly ports: readonly number[]
}

const KNOWN = /^(?:WORKDIR|COPY|RUN|ENV|USER|EXPOSE|ENTRYPOINT|CMD)$/

/**
 * The stages of a Dockerfile, with the defaults of its arguments. @throws Error for what this reader does not
 * know
 */
export function stagesOf(dockerfile: string): Stage[] {
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = []
  const defaults = new Map<string, string>()
  for (const line of dockerfile.split('\n').map((each) => each.trim())) {
    if (line === '' || line.startsWith('#')) continue
    if (line.endsWith('\\')) throw new Error(`An instruction must be on one line: ${line}`)
    const [, name, text] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    if (name === 'FROM') {
      const [, base, stage] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(text!)!
      const image = base!.replace(/^\$\{(\w+)\}$/, (_, argument: string) => defaults.get(argument)!)
      stages.push({ base: image, name: stage, instructions: [] })
    } else if (name === 'ARG' && stages.length === 0) {
      const [, argument, value] = /^(\w+)=(\S+)$/.exec(text!)!
      defaults.set(argument!, value!)
    } else if (name !== undefined && KNOWN.test(name)) stages.at(-1)!.instructions.push({ name, text: text! })
    else throw new Error(`${line} is not supported`)
  }
  return stages
}

/** What the last stage says of its containers. */
export function startOf({ instructions }: Stage): Start {
  const last = (name: string): string => instructions.findLast((each) => each.name === name)?.text ?? ''
  const all = (name: string): string[] =>
    instructions.filter((each) => each.name === name).flatMap(({ text }) => text.split(/\s+/))
  const list = (name: string): string[] => JSON.parse(last(name)) as string[]
  return {
    env: Object.fromEntries(all('ENV').map((pair) => pair.split('=') as [string, string])),
    user: last('USER'),
    folder: last('WORKDIR'),
    command: [...list('ENTRYPOINT'), ...list('CMD')],
    ports: all('EXPOSE').map(Number),
  }
}

/**
 * Whether a path of the context reaches the build: the last pattern that matches it or a folder above it
 * decides, as Docker's documentation of .dockerignore says. Knows `**`, `*` within a name, and `!`.
 */
export function isInContext(path: string, patterns: readonly string[]): boolean {
  return patterns.reduce((isIn, pattern) => {
    const isBack = pattern.startsWith('!')
    return matches(path, isBack ? pattern.slice(1) : pattern) ? isBack : isIn
  }, true)
}

function matches(path: string, pattern: string): boolean {
  const source = pattern
    .split('**')
    .map((part) => part.split('*').map(escaped).join('[^/]*'))
    .join('.*')
  return new RegExp(`^${source}(?:/|$)`).test(path)
}

function escaped(text: string): string {
  return text.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
}
