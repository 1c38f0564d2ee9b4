import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { ownValue } from '../../../common/own-keys.ts'
import type { PreparedModel } from '../../../model-archiver/prepare.ts'
import { linkingModules, packageRoot, serverModules } from '../../../model-archiver/package-root.ts'
import { modulesAbove } from '../../../model-archiver/workspace.ts'
import type { Settings } from '../../config/settings.ts'
import type { SandboxSettings } from '../../models/sandbox-settings.ts'
import { openPlaces } from './open-places.ts'

/** Absolute paths that a worker may use. Those that do not exist are ignored. */
export interface Places {
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Programs, libraries, and what the kernel tells. */
const SYSTEM = [
  ...[
    '/usr',
    '/bin',
    '/sbin',
    '/lib',
    '/lib32',
    '/lib64',
    '/opt',
    '/nix/store',
    '/gnu/store',
    '/proc',
    '/sys',
  ],
  ...['/run/systemd/resolve', '/run/opengl-driver', '/run/current-system'],
]

/** What libraries read of /etc. The rest may be secrets of a server that runs as root. */
const ETC = [
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'ld.so.preload', 'alternatives', 'localtime', 'timezone'],
  ...['resolv.conf', 'hosts', 'host.conf', 'nsswitch.conf', 'gai.conf', 'services', 'protocols', 'hostname'],
  ...[
    'passwd',
    'group',
    'ssl/certs',
    'ssl/openssl.cnf',
    'ssl/cert.pem',
    'pki/tls/certs',
    'pki/ca-trust',
    'ca-certificates',
  ],
  ...[
    'os-release',
    'lsb-release',
    'debian_version',
    'mime.types',
    'fonts',
    'glvnd',
    'vulkan',
    'OpenCL',
    'nvidia',
  ],
].map((name) => join('/etc', name))

const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'dri', 'kfd', 'infiniband', 'nvidia-caps']
const ACCELERATOR = /^(nvidia|neuron|accel|dxg)/

/** Variables of the operator that name files for the worker. */
const PATH_VARIABLES = [
  ...[
    'NODE_EXTRA_CA_CERTS',
    'NODE_PATH',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
  ],
  ...['PYTHONPATH', 'PYTHONHOME', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'LD_LIBRARY_PATH', 'LD_PRELOAD'],
  ...[
    'CUDA_HOME',
    'CUDA_PATH',
    'HF_HOME',
    'HF_HUB_CACHE',
    'TRANSFORMERS_CACHE',
    'TORCH_HOME',
    'XDG_CACHE_HOME',
  ],
]

/** Links of a model's folder that are followed. */
const MAX_LINKS = 1000

export interface Guest {
  readonly settings: Settings
  readonly sandbox: SandboxSettings
  readonly prepared: PreparedModel
  /** The folder of this start of the worker: its socket and its temporary files. */
  readonly folder: string
  /** Further paths of its runtime, such as Python's. */
  readonly runtime: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/**
 * What a worker needs: its model, its runtime and the system, to read; its own folder and devices, to write.
 * Not what is secret, even where it is inside of these.
 */
export function placesOf({ settings, sandbox, prepared, folder, runtime, env }: Guest): Places {
  const strict = sandbox.mode === 'strict'
  const { modelDir, workDir, linked } = prepared
  const real = realpathSync(modelDir)
  const isCopy = real.startsWith(realOr(workDir))
  const own = [
    modelDir,
    workDir,
    ...linked,
    ...modulesAbove(real),
    ...packageFiles(real),
    ...(isCopy ? [] : linkedFrom(real)),
  ]
  const read = [
    ...SYSTEM,
    ...(strict ? ETC : ['/etc']),
    ...serverParts(),
    process.execPath,
    ...(settings.metricsConfig === undefined ? [] : [settings.metricsConfig]),
    ...runtime,
    ...variablePaths(env),
    ...(strict ? [] : caches(env)),
    ...sandbox.read.map(realOr),
    ...own,
  ]
  // A model that was unpacked for this server may change its copy; handlers unpack weights there.
  const copy = strict || !isCopy ? [] : [modelDir]
  const write = [folder, ...devices(), ...(strict ? [] : ['/dev/shm']), ...copy, ...sandbox.write.map(realOr)]
  const secret = secretPlaces(settings)
  return { read: openPlaces(read, secret), write: openPlaces(write, secret) }
}

/** What no worker may read unless it is named: keys, logs, other models, and all of the server's folder. */
export function secretPlaces(settings: Settings): string[] {
  const cwd = process.cwd()
  const named = [
    ...[settings.tempDir, settings.logLocation, settings.metricsLocation, settings.modelStore],
    ...[settings.workflowStore, settings.keystore, settings.privateKeyFile, settings.certificateFile],
    ...[cwd, join(cwd, 'key_file.json'), join(cwd, 'config.properties')],
  ].filter((path) => path !== undefined)
  return [...new Set(named.flatMap((path) => [path, realOr(path)]))]
}

function serverParts(): string[] {
  const root = packageRoot()
  const parts = ['dist', 'libexec', 'configs', 'proto', 'package.json', 'node_modules'].map((name) =>
    join(root, name),
  )
  // Handlers that ship find their packages above the package too.
  parts.push(...modulesAbove(realOr(root)), ...linkingModules(root))
  const modules = serverModules(root)
  return modules === undefined ? parts : [...parts, modules]
}

/**
 * The operator's own folder may have its weights elsewhere. Its handler cannot make such links: it only reads
 * it.
 */
function linkedFrom(folder: string): string[] {
  const links = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isSymbolicLink())
  return links.slice(0, MAX_LINKS).map(({ name }) => realOr(join(folder, name)))
}

/** Node reads the package.json files above a module, to know what kind it is. */
function packageFiles(folder: string): string[] {
  const files: string[] = []
  for (let at = folder; dirname(at) !== at; at = dirname(at)) files.push(join(at, 'package.json'))
  return files.filter((file) => existsSync(file))
}

function variablePaths(env: Readonly<Record<string, string>>): string[] {
  return PATH_VARIABLES.flatMap((name) => (ownValue(env, name) ?? '').split(delimiter)).filter((path) =>
    isAbsolute(path),
  )
}

/** Where libraries keep models that were downloaded before. */
function caches(env: Readonly<Record<string, string>>): string[] {
  const cache = join(env['HOME'] ?? homedir(), '.cache')
  return ['huggingface', 'torch'].map((name) => join(cache, name))
}

function devices(): string[] {
  const found = readdirSync('/dev').filter((name) => ACCELERATOR.test(name))
  return [...new Set([...DEVICES, ...found])].map((name) => join('/dev', name))
}

/** The path without links; where there is none, the path itself. */
export function realOr(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
