import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const { bin: COMMANDS } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  bin: Record<string, string>
}

/** Runs commands of the documentation in a folder where the package is installed. */
export class Shell {
  readonly folder = tempDir()
  readonly #env: NodeJS.ProcessEnv

  constructor() {
    const bin = join(this.folder, '.bin')
    const temp = join(this.folder, '.tmp')
    mkdirSync(bin)
    mkdirSync(temp)
    for (const [name, path] of Object.entries(COMMANDS)) {
      const script = `#!/bin/sh\nexec '${process.execPath}' '${join(REPOSITORY, path)}' "$@"\n`
      writeFileSync(join(bin, name), script, { mode: 0o755 })
    }
    const PATH = [bin, process.env['PATH']].join(delimiter)
    this.#env = { ...process.env, NODE_OPTIONS: '', PATH, TEMP: temp, TMPDIR: temp }
  }

  /**
   * Runs a script, which ends at the first command that fails.
   * @returns what it wrote to stdout and stderr
   * @throws (rejects) when a command fails
   */
  async run(script: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    // A file, because a server in the background keeps stdout and stderr.
    const said = join(this.folder, '.said')
    const options = {
      cwd: this.folder,
      env: { ...this.#env, ...env },
      stdio: 'ignore',
      reject: false,
    } as const
    const { exitCode } = await execa('bash', ['-e', '-c', `exec > "$0" 2>&1\n${script}`, said], options)
    const output = readFileSync(said, 'utf8')
    if (exitCode !== 0) throw new Error(`${script}\nended with status ${exitCode}:\n${output}`)
    return output
  }
}
