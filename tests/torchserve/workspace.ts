import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { BUILD } from './places.ts'

/** What the tests read of a checkout. */
const PARTS = [
  'test',
  'ts',
  'ts_scripts',
  'examples',
  'model-archiver',
  'kubernetes/kserve',
  'frontend/server/src/main/resources/proto',
  'third_party/google',
]

/** Where one run of the tests takes place: a copy of the checkout, commands, a temporary folder, reports. */
export class Workspace {
  /** The copy; tests write into it. */
  readonly checkout = join(BUILD, 'torchserve', 'serve')
  /** On PATH of everything that runs: `torchserve` and the archivers. */
  readonly bin = join(BUILD, 'torchserve', 'bin')
  /** Stand-in archives, made once per run. */
  readonly archives = join(BUILD, 'torchserve', 'archives')
  /** Python modules of ours. */
  readonly python = join(BUILD, 'torchserve', 'python')
  readonly reports = join(BUILD, 'torchserve', 'reports')
  /** Short, because sockets are made in it. */
  readonly temp: string

  /** Folder of the Python commands. */
  readonly venvBin: string

  private constructor(temp: string, venvBin: string) {
    this.temp = temp
    this.venvBin = venvBin
  }

  /** @throws Error when `tests` is no checkout of pytorch/serve */
  static async create(tests: string, venvBin: string): Promise<Workspace> {
    const source = resolve(tests)
    if (!existsSync(join(source, 'test', 'postman')))
      throw new Error(`${source} is no checkout of pytorch/serve: it has no folder test/postman.`)
    const space = new Workspace(await mkdtemp(join(tmpdir(), 'ts-')), venvBin)
    await rm(join(BUILD, 'torchserve'), { recursive: true, force: true })
    for (const folder of [space.bin, space.archives, space.reports]) await mkdir(folder, { recursive: true })
    for (const part of PARTS) await copy(join(source, part), join(space.checkout, part))
    return space
  }

  /**
   * The public archives' hosts are replaced by a mirror on this machine, from which models may not come by
   * default.
   */
  get env(): NodeJS.ProcessEnv {
    const { NODE_OPTIONS: _, ...rest } = process.env
    return {
      ...rest,
      PATH: [this.bin, this.venvBin, process.env['PATH']].join(delimiter),
      TMPDIR: this.temp,
      TEMP: this.temp,
      TS_ALLOW_PRIVATE_URLS: 'true',
    }
  }

  async remove(): Promise<void> {
    await rm(this.temp, { recursive: true, force: true })
  }
}

async function copy(from: string, to: string): Promise<void> {
  if (existsSync(from)) await cp(from, to, { recursive: true })
}
