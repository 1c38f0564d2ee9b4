import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { CliFlags } from './flags.ts'
import { parseFlags } from './flags.ts'

/** Files that start servers: shell scripts, and those of images and their orchestrators. */
const SCRIPT = /\.(?:ba)?sh$|dockerfile|\.ya?ml$|\.service$/i
const MAX_SCRIPT_BYTES = 1_000_000

/** Lines that look for the Java process, whose end or pid is no other program's to know. */
const JAVA_PROCESS =
  /\b(?:p?kill(?:all)?|pgrep|pidof|jps|grep)\b.*\bjava\b|\bjps\b|org\.pytorch\.serve\.ModelServer/

/**
 * Reads the scripts in a folder for calls of `torchserve` that start this configuration.
 * @returns the flags of all starts, the places of the starts, and the lines that must change, with the reason
 */
export async function readScripts(
  folder: string,
  config: string,
): Promise<{ flags: CliFlags; starts: string[]; problems: string[] }> {
  let flags: CliFlags = {}
  const [starts, problems]: [string[], string[]] = [[], []]
  for (const name of (await readdir(folder)).filter((each) => SCRIPT.test(each)).sort()) {
    const path = join(folder, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats?.isFile() !== true || stats.size > MAX_SCRIPT_BYTES) continue
    for (const [line, text] of linesOf(await readFile(path, 'utf8'))) {
      const place = `${name}:${line}`
      if (JAVA_PROCESS.test(text))
        problems.push(
          `${place} looks for the Java process: use torchserve-ts status, or torchserve-ts --stop`,
        )
      const call = flagsOf(text)
      if (call === undefined || call.stop === true || call.version === true) continue
      if (call.tsConfig !== undefined && basename(call.tsConfig) !== basename(config)) continue
      flags = { ...flags, ...call }
      starts.push(`${place} starts it`)
    }
  }
  return { flags, starts, problems }
}

/** Lines with their numbers; one that ends with a backslash goes on in the next. */
function* linesOf(text: string): Generator<readonly [number, string]> {
  let [begun, first] = ['', 0]
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (begun === '') first = index + 1
    begun += line
    if (line.endsWith('\\')) begun = `${begun.slice(0, -1)} `
    else {
      if (!/^\s*#/.test(begun)) yield [first, begun]
      begun = ''
    }
  }
}

/** The flags of a call of `torchserve`, in a shell or as a list of words; undefined: there is none. */
function flagsOf(line: string): CliFlags | undefined {
  const words = line.replace(/["'`,[\]()]/g, ' ')
  const call = /(?:^|[\s;&|/])torchserve\s+(-[^;&|>]*)/.exec(words)?.[1]
  if (call === undefined) return undefined
  const nothing = (): void => undefined
  const flags = parseFlags(call.trim().split(/\s+/), { out: nothing, err: nothing })
  return typeof flags === 'number' ? undefined : flags
}
