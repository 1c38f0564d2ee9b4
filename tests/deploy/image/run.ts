/**
 * Executes the steps of deploy/container/Dockerfile without a container engine and starts what comes out in
 * namespaces, as its entry point says: `npm run test:image`. Needs Linux, npm's registry or cache, and
 * `unshare`, `ip` and `pivot_root`. One line per check; ends with `N passed, N failed`; where namespaces are
 * not permitted, it says so and ends with status 3.
 */
import { cp, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { REPOSITORY } from '../../support/server-process.ts'
import { execa } from '../../support/tools.ts'
import { type Checks, runChecks } from '../../dashboards/checks.ts'
import { buildImage, type Image } from './build.ts'
import { startOf } from './dockerfile.ts'

const HERE = import.meta.dirname
const BOX_LIMIT_MS = 120_000
const MIB = 1024 * 1024
/** Of what the Dockerfile adds to its base image. */
const MAX_MIB = 60

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

async function main(folder: string, checks: Checks): Promise<void> {
  const image = await buildImage(folder, (step) => {
    console.log(`   ${step}`)
  })
  const { command, env, folder: app } = startOf(image.stage)
  const size = await bytesOf(join(image.root, app))
  checks.check(
    `the image adds ${(size / MIB).toFixed(1)} MiB to its base, at most ${MAX_MIB}`,
    size <= MAX_MIB * MIB ? undefined : 'it is larger',
  )
  console.log(`   Node.js itself: ${((await stat(process.execPath)).size / MIB).toFixed(1)} MiB`)
  const { found, log } = await runBox(image, folder)
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

/** Starts the image in namespaces of its own, asks it, and ends it. */
async function runBox(image: Image, folder: string): Promise<{ found: Found; log: string }> {
  const { env, user, folder: app, command } = startOf(image.stage)
  const models = join(folder, 'models')
  await cp(join(REPOSITORY, 'model-store', 'count'), join(models, 'count'), { recursive: true })
  const root = join(folder, 'root')
  await mkdir(root)
  const probe = join(HERE, 'probe.mjs')
  const box = [join(HERE, 'box.sh'), root, join(image.root, app), app, models, probe, user, ...command]
  const { stdio, all } = (await execa('unshare', ['--map-root-user', '--mount', '--net', 'sh', ...box], {
    extendEnv: false,
    env: {
      ...env,
      NODE: process.execPath,
      PATH: `${dirname(process.execPath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
      HOME: '/home/node',
      TMPDIR: '/tmp',
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    all: true,
    reject: false,
    timeout: BOX_LIMIT_MS,
  })) as unknown as { stdio: (string | undefined)[]; all: string }
  const lines = (stdio[3] ?? '').split('\n').filter(Boolean)
  const found = Object.assign({}, ...lines.map((line) => JSON.parse(line) as Found)) as Found
  return { found: lines.length === 0 ? { problem: 'The box did not start' } : found, log: all }
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
