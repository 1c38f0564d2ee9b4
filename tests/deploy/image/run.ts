/**
 * Executes the steps of deploy/container/Dockerfile, and of python.Dockerfile beside it, without a container
 * engine and starts what comes out in namespaces, as its entry point says: `npm run test:image`. Needs Linux,
 * npm's registry and PyPI or their caches, `unshare`, `ip` and `pivot_root`, and /usr/bin/python3 with venv.
 * One line per check; ends with `N passed, N failed`; where namespaces are not permitted, it says so and ends
 * with status 3.
 */
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { REPOSITORY } from '../../support/server-process.ts'
import { execa } from '../../support/tools.ts'
import { type Checks, runChecks } from '../../dashboards/checks.ts'
import { packPython } from '../../support/python/archive.ts'
import { STAND_IN, type TestPython, TORCHSERVE_PACKAGES } from '../../support/python/environments.ts'
import { findBasePython, installPackages, makeVenv, purelib } from '../../support/python/venv.ts'
import { buildImage, type Image } from './build.ts'
import { startOf } from './dockerfile.ts'

const HERE = import.meta.dirname
const BOX_LIMIT_MS = 120_000
/** Of what the Dockerfile adds to its base image. */
const MAX_BYTES = 60 * 1024 * 1024
const NODE = '/usr/local/bin/node'
/** Where it is in a box, whose /usr is this machine's. */
const BOX_NODE = '/image/bin/node'
/** Of TorchServe's image, as its Dockerfile says. */
const VENV = '/home/venv'
const TORCHSERVES_ENV = { PATH: `${VENV}/bin`, HOME: '/home/model-server', PYTHONUNBUFFERED: 'TRUE' }
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** What probe.mjs and box.sh say. */
interface Found {
  firstProcess?: string
  unary?: number
  body?: string
  ports?: Record<string, boolean>
  written?: string[]
  streamed?: number
  bytes?: number
  exitCode?: number
  problem?: string
}

/** A container of an image. */
interface Container {
  readonly image: Image
  /** Folder with its models, of which `count` is asked. */
  readonly models: string
  /** What its base image has besides this machine's /usr and /etc, and its variables. */
  readonly base: { readonly mounts: readonly string[]; readonly env: Readonly<Record<string, string>> }
}

async function main(folder: string, checks: Checks): Promise<void> {
  const log = (step: string): void => {
    console.log(`   ${step}`)
  }
  const image = await buildImage('Dockerfile', join(folder, 'server'), new Map(), log)
  const { folder: app } = startOf(image.stage)
  const size = await bytesOf(join(image.root, app))
  checks.check(
    `the image adds ${mib(size)} to its base, at most ${mib(MAX_BYTES)}`,
    size <= MAX_BYTES ? undefined : 'it is larger',
  )
  const models = join(folder, 'models')
  await cp(join(REPOSITORY, 'model-store', 'count'), join(models, 'count'), { recursive: true })
  await checkContainer({ image, models, base: { mounts: [], env: {} } }, checks)

  // What the base image of Node.js has.
  await cp(process.execPath, join(image.root, NODE))
  const python = await pythonBase(join(folder, 'python-base'))
  if (python === undefined) {
    console.log('python image: left out, because there is no /usr/bin/python3 with venv and pip')
    return
  }
  const archives = join(folder, 'archives')
  const handler = await readFile(join(HERE, 'count.py'), 'utf8')
  await packPython(python, archives, { name: 'count', handler, config: 'minWorkers: 1\nmaxWorkers: 1\n' })
  log(`its Python environment, without PyTorch: ${mib(await bytesOf(python.root))}`)
  const bases = new Map([
    ['torchserve-ts:latest', image.root],
    ['pytorch/torchserve:0.12.0-cpu', python.root],
  ])
  const other = await buildImage('python.Dockerfile', join(folder, 'python'), bases, log)
  const whole = size + (await stat(process.execPath)).size
  const added = (await bytesOf(join(other.root, app))) + (await stat(join(other.root, NODE))).size
  checks.check(
    `the image for Python archives adds ${mib(added)} to its base: the server and Node.js`,
    added === whole ? undefined : `not ${mib(whole)}`,
  )
  const venv = [join(other.root, VENV), VENV]
  await checkContainer(
    { image: other, models: archives, base: { mounts: venv, env: TORCHSERVES_ENV } },
    checks,
  )
}

/** Where TorchServe's image has its Python environment; this one has the tests' stand-in for PyTorch. */
async function pythonBase(root: string): Promise<(TestPython & { root: string }) | undefined> {
  const base = await findBasePython('/usr/bin/python3')
  if (base === undefined) return undefined
  const venv = join(root, VENV)
  await makeVenv(base.python, venv, [])
  await installPackages(venv, TORCHSERVE_PACKAGES)
  const bin = join(venv, 'bin')
  await cp(STAND_IN, await purelib(join(bin, 'python')), { recursive: true })
  return { root, python: join(bin, 'python'), bin, realTorch: false }
}

async function checkContainer(container: Container, checks: Checks): Promise<void> {
  const { env, command } = startOf(container.image.stage)
  const { found, log } = await runBox(container)
  const { firstProcess, unary, body, ports = {}, written = [], streamed, bytes, exitCode, problem } = found
  checks.check(`it serves: ${command.join(' ')}`, problem === undefined ? undefined : `${problem}\n${log}`)
  checks.check('the server is the first process', firstProcess === '1' ? undefined : `it is ${firstProcess}`)
  checks.check('a request is answered', unary === 200 && body !== '' ? undefined : `${unary} ${body}`)
  for (const port of [8080, 9000, 8082, 8081])
    checks.check(`port ${port} is open`, ports[port] === true ? undefined : 'it is not')
  const expected = 10 * 64
  console.log(`   it wrote ${written.join(' ') || 'nothing'}`)
  const logs = written.filter((path) => path.startsWith(`${env['LOG_LOCATION']}/`))
  checks.check('its logs are where the image says', logs.length > 0 ? undefined : 'there are none')
  const refused = log.split('\n').filter((line) => /EROFS|EACCES|EPERM|read-only file system/i.test(line))
  checks.check('it tries to write nowhere else', refused.length === 0 ? undefined : refused.join('\n'))
  checks.check(
    `a stream ends whole after SIGTERM: ${bytes} bytes`,
    streamed === 200 && bytes === expected ? undefined : `${streamed}, not ${expected} bytes`,
  )
  checks.check('it ends with status 0', exitCode === 0 ? undefined : `with ${exitCode}`)
}

/** Starts the container in namespaces of its own, asks it, and ends it. */
async function runBox({ image, models, base }: Container): Promise<{ found: Found; log: string }> {
  const { env, user, folder: app, command } = startOf(image.stage)
  const root = await mkdtemp(join(dirname(image.root), 'box-'))
  const own = join(image.root, NODE)
  const node = existsSync(own) ? own : process.execPath
  const mounts = [join(image.root, app), app, models, '/mnt/models', ...base.mounts, node, BOX_NODE]
  const box = [join(HERE, 'box.sh'), root, app, join(HERE, 'probe.mjs'), user, ...mounts, '--', ...command]
  const folders = [dirname(BOX_NODE), base.env['PATH'], SYSTEM_PATH].filter(Boolean)
  const { stdio, all } = (await execa('unshare', ['--map-root-user', '--mount', '--net', 'sh', ...box], {
    extendEnv: false,
    env: {
      ...{ HOME: '/home/node', TMPDIR: '/tmp' },
      ...base.env,
      ...env,
      ...{ NODE: BOX_NODE, PATH: folders.join(':') },
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    all: true,
    reject: false,
    timeout: BOX_LIMIT_MS,
  })) as unknown as { stdio: (string | undefined)[]; all: string }
  const lines = (stdio[3] ?? '').split('\n').filter(Boolean)
  const found = Object.assign({}, ...lines.map((line) => JSON.parse(line) as Found)) as Found
  return { found: lines.length === 0 ? { problem: `The box did not start: ${all}` } : found, log: all }
}

function mib(bytes: number): string {
  return `${(bytes / (1024 * 1024)).toFixed(1)} MiB`
}

async function bytesOf(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Why a box cannot be made here; undefined: it can. */
async function refusal(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `this is ${process.platform}, not Linux`
  const script = 'mount -t tmpfs t /mnt && ip link set lo up && command -v pivot_root'
  const { exitCode, all } = await execa(
    'unshare',
    ['--map-root-user', '--mount', '--net', 'unshare', '--user', '--map-user=1000', 'true'],
    { all: true, reject: false },
  )
  if (exitCode !== 0) return all
  const box = await execa('unshare', ['--map-root-user', '--mount', '--net', 'sh', '-c', script], {
    all: true,
    reject: false,
  })
  return box.exitCode === 0 ? undefined : box.all
}

const reason = await refusal()
if (reason === undefined) {
  await runChecks('image', main)
} else {
  console.log(`image: namespaces are not permitted here: ${reason}`)
  process.exitCode = 3
}
