import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { REPOSITORY } from '../../support/server-process.ts'
import { execa } from '../../support/tools.ts'
import { isInContext, type Stage, stagesOf } from './dockerfile.ts'

const CONTAINER = join(REPOSITORY, 'deploy', 'container')
/** npm ci on two busy cores. */
const RUN_LIMIT_MS = 480_000

/** The last stage, and the folder that has what it copied. */
export interface Image {
  readonly stage: Stage
  readonly root: string
}

/**
 * Executes the steps of a Dockerfile of deploy/container without a container engine: each stage has a folder
 * for its files instead of its base image, and RUN runs with this machine's programs in the working
 * directory.
 * @param folder for the stages @param bases folders with files of base images, which stages go on in
 * @param log gets each step
 */
export async function buildImage(
  dockerfile: string,
  folder: string,
  bases: ReadonlyMap<string, string>,
  log: (step: string) => void,
): Promise<Image> {
  const roots = new Map<string, string>()
  const context = join(folder, 'context')
  const path = join(CONTAINER, dockerfile)
  // Without one the whole folder would be sent: nothing is taken from there.
  if (existsSync(`${path}.dockerignore`)) await copyContext(`${path}.dockerignore`, context)
  let image: Image | undefined
  for (const [k, stage] of stagesOf(await readFile(path, 'utf8')).entries()) {
    const root = bases.get(stage.base) ?? join(folder, `stage-${k}`)
    if (stage.name !== undefined) roots.set(stage.name, root)
    log(`FROM ${stage.base}`)
    await runStage(stage, root, context, roots, log)
    image = { stage, root }
  }
  return image!
}

/** What `docker build` would send: the files of git that .dockerignore lets through. */
async function copyContext(ignored: string, context: string): Promise<void> {
  const patterns = (await readFile(ignored, 'utf8')).split('\n').filter(Boolean)
  const { stdout } = await execa('git', ['ls-files', '-co', '--exclude-standard'], { cwd: REPOSITORY })
  for (const path of stdout.split('\n').filter((each) => isInContext(each, patterns))) {
    await mkdir(dirname(join(context, path)), { recursive: true })
    await cp(join(REPOSITORY, path), join(context, path), { verbatimSymlinks: true })
  }
}

async function runStage(
  { instructions }: Stage,
  root: string,
  context: string,
  roots: ReadonlyMap<string, string>,
  log: (step: string) => void,
): Promise<void> {
  let folder = root
  for (const { name, text } of instructions) {
    log(`${name} ${text}`)
    if (name === 'WORKDIR') await mkdir((folder = join(root, text)), { recursive: true })
    if (name === 'COPY') {
      const [, from, paths] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(text)!
      const source = from === undefined ? context : roots.get(from)!
      await copy(paths!.split(/\s+/), source, folder, root)
    }
    if (name === 'RUN')
      await execa('sh', ['-c', text], {
        cwd: folder,
        env: { NODE_OPTIONS: '', npm_config_prefer_offline: 'true' },
        timeout: RUN_LIMIT_MS,
      })
  }
}

/** COPY: a folder's contents, or files; what is not there fails, as in a build. */
async function copy(paths: readonly string[], source: string, folder: string, root: string): Promise<void> {
  const to = join(paths.at(-1)!.startsWith('/') ? root : folder, paths.at(-1)!)
  const isFolder = paths.at(-1)!.endsWith('/') || paths.length > 2
  for (const path of paths.slice(0, -1)) {
    const from = join(source, path)
    const isFile = (await stat(from)).isFile()
    if (isFile) await cp(from, isFolder || to === folder ? join(to, basename(path)) : to)
    else
      for (const each of await readdir(from))
        await cp(join(from, each), join(to, each), { recursive: true, verbatimSymlinks: true })
  }
}
