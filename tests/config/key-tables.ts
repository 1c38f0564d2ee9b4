import { INERT_KEYS } from '../../frontend/config/removed-keys.ts'
import type { KeySpec } from '../../frontend/config/key-spec.ts'
import { KEYS } from '../../frontend/config/keys.ts'

/** The largest values of integers without a limit of their own. */
const LARGEST: ReadonlySet<string> = new Set(['2147483647', '9007199254740991'])
const SPECS: KeySpec<unknown>[] = Object.values(KEYS)

/** The tables of docs/configuration.md, by the heading that they stand under. */
export const KEY_TABLES: Readonly<Record<string, string>> = {
  'Keys of TorchServe': table(keyRows((spec) => spec.from === 'file' && !spec.ours)),
  'Keys of our own': table(keyRows((spec) => spec.from === 'file' && spec.ours)),
  'Environment only': table(keyRows((spec) => spec.from === 'environment')),
  'Keys without effect': table([
    ['Key', 'Why it has no effect'],
    ...[...new Set(INERT_KEYS.map(({ reason }) => reason))].map((reason) => [
      INERT_KEYS.filter((key) => key.reason === reason)
        .map(({ name }) => code(name))
        .join(', '),
      reason,
    ]),
  ]),
}

function keyRows(belongs: (spec: KeySpec<unknown>) => boolean): string[][] {
  const rows = SPECS.filter(belongs).map((spec) => [code(spec.name), typeOf(spec), defaultOf(spec), spec.doc])
  return [['Key', 'Type', 'Default', 'Meaning'], ...rows]
}

/** With the range of a number, if it has an end that a user could meet. */
function typeOf({ type: { label, expected } }: KeySpec<unknown>): string {
  const range = /\bfrom (\S+) to (\S+)$/.exec(expected)
  if (range === null) return label
  return `${label}, ${range[1]!} ${LARGEST.has(range[2]!) ? 'or more' : `to ${range[2]!}`}`
}

function defaultOf({ name, fallback }: KeySpec<unknown>): string {
  if (name === KEYS.tempDir.name) return 'the system’s'
  return fallback === undefined || fallback === '' ? 'unset' : code(fallback)
}

function table([head, ...rows]: string[][]): string {
  const line = (cells: string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head!), `|${'---|'.repeat(head!.length)}`, ...rows.map(line)].join('\n')
}

function code(text: string): string {
  return `\`${text}\``
}
