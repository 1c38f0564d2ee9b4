import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { Command } from 'commander'
import { shownPath } from '../../common/curl-lines.ts'
import { ServeError } from '../../common/errors.ts'
import { ownValue } from '../../common/json.ts'
import { pathExists } from '../../common/files.ts'
import { locateModel } from '../../model-archiver/locate.ts'
import { ARCHIVE_SUFFIX } from '../../model-archiver/model-names.ts'
import { listStore } from '../../model-archiver/store.ts'
import { checkExposure } from '../config/exposure.ts'
import { asksForIdentity } from '../config/identity.ts'
import type { KeySpec } from '../config/key-spec.ts'
import { KEYS } from '../config/keys.ts'
import { loadSettings, type ConfigFlags, type StartSettings } from '../config/load-settings.ts'
import { parseProperties, type Entry } from '../config/properties.ts'
import { shownValue } from '../config/secrets.ts'
import { PATH, PORT } from '../config/value-types.ts'
import { ArchiveReport } from './archive-report.ts'
import { checkUnpacked } from './check-archive.ts'
import { checkFolder } from './check-folder.ts'
import { startupRequests } from './check-models.ts'
import { describeFailure } from './describe-failure.ts'
import type { Output } from './output.ts'
import { readScripts } from './start-scripts.ts'
import { newCommand, runCommand } from './subcommand.ts'

interface MigrateFlags extends Omit<ConfigFlags, 'tsConfig' | 'entries'> {
  host?: string[]
  origin?: string[]
}

const EXAMPLES = `
Examples:
  What the configuration of this folder needs, with the flags of its scripts:
    $ torchserve-ts migrate
  The same for a server whose clients come through a proxy, and from a web page:
    $ torchserve-ts migrate config.properties --host models.example.com --origin https://app.example.com

Starts nothing, and changes no file. Status 0: the last line starts the server, after the lines above it;
1: something is left to do by hand. More: docs/migrating-from-torchserve.md`

/**
 * The command `torchserve-ts migrate`: what a configuration of TorchServe needs to start here.
 * @returns the exit status
 */
export function runMigrate(argv: readonly string[], output: Output): Promise<number> {
  const program = definition(output)
  return runCommand(program, argv, output, () =>
    new Migration(program.args[0] ?? 'config.properties', program.opts<MigrateFlags>(), output).run(),
  )
}

function definition(output: Output): Command {
  return newCommand('torchserve-ts migrate', output)
    .description(
      'Checks a configuration of TorchServe, and prints the lines and the command that start it here',
    )
    .argument('[config.properties]', 'the configuration (default: the one of this folder)')
    .option('--model-store <folder>', 'folder of the archives, if it is not the one of the configuration')
    .option('--workflow-store <folder>', 'folder of the workflow archives')
    .option('--models <models...>', 'models to load at start')
    .option('--log-config <file>', 'log4j2.xml of TorchServe')
    .option('--dt, --disable-token-auth', 'requests need no token')
    .option('--enable-model-api', 'clients can register models')
    .option('--host <names...>', 'names by which clients call a server without tokens')
    .option('--origin <origins...>', 'sites whose web pages call the server')
    .addHelpText('after', EXAMPLES)
}

/** Where archives often are, beside their configuration. */
const STORES = ['model_store', 'model-store', 'model_archive', 'models']

class Migration {
  readonly #path: string
  readonly #flags: MigrateFlags
  readonly #output: Output
  /** Lines for the configuration; the reasons are comments. */
  readonly #lines: string[] = []
  /** The same, as a start reads them. */
  readonly #entries: Entry[] = []
  readonly #commands: string[] = []
  readonly #problems: string[] = []
  #env: NodeJS.ProcessEnv

  constructor(path: string, flags: MigrateFlags, output: Output) {
    this.#path = path
    this.#flags = flags
    this.#output = output
    const { TS_CONFIG_FILE: _, ...env } = process.env
    this.#env = env
  }

  async run(): Promise<number> {
    const text = await readFile(this.#path, 'utf8').catch((cause: unknown) => {
      throw new ServeError('CONFIG', `The config file cannot be read: ${(cause as Error).message}`, { cause })
    })
    const scripts = await readScripts(dirname(this.#path), this.#path)
    const { disableTokenAuth, enableModelApi, models, logConfig } = scripts.flags
    const flags: ConfigFlags = { disableTokenAuth, enableModelApi, models, logConfig, ...this.#flags }
    this.#problems.push(...scripts.problems)
    for (const start of scripts.starts) this.#output.out(start)
    const entries = parseProperties(text, this.#path, undefined)
    const given = new Map(entries.map((entry) => [entry.name, entry]))
    await this.#findStores(flags, given)
    this.#setVariables(given, flags)
    this.#fixValues(given)
    try {
      const files = { ...flags, tsConfig: this.#path, configSnapshots: false }
      const loaded = await loadSettings({ ...files, entries: this.#entries }, this.#env)
      await this.#check(loaded)
    } catch (error) {
      this.#problems.push(describeFailure(error))
    }
    this.#print(flags, scripts.starts.length > 0)
    return this.#problems.length === 0 ? 0 : 1
  }

  /** Stores that are elsewhere on this machine are named by flags, so that the file serves both. */
  async #findStores(flags: ConfigFlags, given: ReadonlyMap<string, Entry>): Promise<void> {
    const isHere = async (key: string): Promise<boolean> => {
      const text = given.get(key)?.text ?? ''
      return text !== '' && !text.includes('$$') && pathExists(text)
    }
    if (flags.modelStore === undefined && !(await isHere('model_store'))) {
      flags.modelStore = await this.#storeBeside()
      const configured = given.get('model_store')
      if (flags.modelStore === undefined)
        this.#problems.push(
          `${configured === undefined ? 'No model_store is configured' : `${configured.origin}: ${configured.text} is not here`}: name the folder of the archives with --model-store`,
        )
    }
    if (flags.workflowStore !== undefined || !given.has('workflow_store')) return
    if (!(await isHere('workflow_store'))) flags.workflowStore = flags.modelStore
  }

  async #storeBeside(): Promise<string | undefined> {
    for (const folder of new Set([dirname(this.#path), '.']))
      for (const each of [...STORES, '.']) {
        const path = join(folder, each)
        const names = await readdir(path).catch(() => [])
        if (names.some((name) => ARCHIVE_SUFFIX.test(name))) return path
      }
    return undefined
  }

  /** `$$NAME$$` takes a variable that a platform sets. Without it, the key has its default. */
  #setVariables(given: ReadonlyMap<string, Entry>, { modelStore }: ConfigFlags): void {
    for (const { name, text } of given.values())
      for (const [whole, variable] of text.matchAll(/\$\$([^$]+)\$\$/g)) {
        if (ownValue(this.#env, variable!) !== undefined) continue
        const fallback = specOf(name)?.fallback ?? ''
        const isPort = text.endsWith(`:${whole}`)
        const value = name === 'model_store' ? modelStore : isPort ? /\d+$/.exec(fallback)?.[0] : fallback
        this.#env = { ...this.#env, [variable!]: value ?? '' }
        this.#commands.push(`export ${variable}=${shownPath(value ?? '')}`)
      }
  }

  /** Values that TorchServe reads in another way, or cannot read either. A later line of the file wins. */
  #fixValues(given: ReadonlyMap<string, Entry>): void {
    for (const { name, text, origin } of given.values()) {
      const spec = specOf(name)
      if (spec === undefined || text === '' || text.includes('$$')) continue
      if (spec.type.parse(text, ignore, ignore) !== undefined) continue
      const port = spec.type === PORT ? /:(\d{1,5})\/?$/.exec(text)?.[1] : undefined
      const why = `${origin}: ${name} must be ${spec.type.expected}, found ${shownValue(name, text)}`
      this.#add(why, name, port ?? spec.fallback ?? '')
    }
  }

  async #check(loaded: StartSettings): Promise<void> {
    const { settings, entries } = loaded
    for (const warning of loaded.warnings) this.#output.out(warning)
    for (const spec of Object.values(KEYS) as KeySpec<unknown>[]) {
      const entry = spec.type === PATH ? entries.get(spec.name) : undefined
      if (entry === undefined || spec.from === 'environment' || spec.name.endsWith('_store')) continue
      if (!(await pathExists(entry.text)))
        this.#problems.push(`${entry.origin}: ${spec.name} names ${entry.text}, which is not here`)
    }
    await checkExposure(settings).catch((error: unknown) => {
      this.#add(describeFailure(error), KEYS.allowInsecureExposure.name, 'true')
    })
    this.#addHosts(!asksForIdentity(settings, false))
    if (settings.modelStore !== undefined) await this.#checkArchives(loaded)
  }

  /** @param isOpen whether clients need no token, so that the server checks by which names they call */
  #addHosts(isOpen: boolean): void {
    const { host, origin } = this.#flags
    const why =
      'Without tokens the server refuses public names that a proxy passes on (Host), and web pages (Origin)'
    if (host !== undefined) this.#add(why, KEYS.allowedHosts.name, host.join(','))
    else if (isOpen) this.#lines.push(`# ${why}. If clients have one:`, '#allowed_hosts=public.name')
    if (origin !== undefined)
      this.#add('Web pages that call it', KEYS.corsAllowedOrigin.name, origin.join(','))
    else if (isOpen) this.#lines.push('#cors_allowed_origin=https://app.example.com')
  }

  async #checkArchives({ settings: configured, modelSource }: StartSettings): Promise<void> {
    const { tempDir, dispose } = await checkFolder()
    const settings = { ...configured, tempDir }
    try {
      const atStart = await startupRequests(settings, modelSource.hint)
      // Without any, clients register the archives of the store.
      const urls =
        atStart.length > 0
          ? atStart.map(({ url }) => url)
          : (await listStore(settings.modelStore!)).models.map(({ location }) => location)
      for (const url of urls) {
        if (/^https?:/i.test(url)) continue
        const { path } = await locateModel(url, { ...settings, trusted: true })
        const report = new ArchiveReport()
        await checkUnpacked(path, settings, report, this.#output)
        for (const line of report.differs) this.#output.out(`  ${line}`)
        this.#problems.push(
          ...[...report.missing, ...report.broken].map((line) => `${basename(path)}: ${line}`),
        )
      }
    } finally {
      await dispose()
    }
  }

  #add(why: string, key: string, text: string): void {
    this.#lines.push(`# ${why}`, `${key}=${text}`)
    this.#entries.push({ name: key, text, origin: 'migrate' })
  }

  #print(flags: ConfigFlags, hasScripts: boolean): void {
    const section = (title: string, lines: readonly string[]): void => {
      if (lines.length > 0) for (const line of ['', title, ...lines]) this.#output.out(line)
    }
    section('By hand:', this.#problems)
    section(`Add to ${this.#path}:`, this.#lines)
    const link = `ln -s "$(command -v torchserve-ts)" /usr/local/bin/torchserve`
    section('Before the start:', [...this.#commands, ...(hasScripts ? [`${link} # for the scripts`] : [])])
    const words = [
      ...['torchserve-ts', '--start', '--ts-config', shownPath(this.#path)],
      ...valueFlag('--model-store', flags.modelStore),
      ...valueFlag('--workflow-store', flags.workflowStore),
      ...(flags.models === undefined ? [] : ['--models', ...flags.models.map(shownPath)]),
      ...valueFlag('--log-config', flags.logConfig),
      ...(flags.disableTokenAuth === true ? ['--disable-token-auth'] : []),
      ...(flags.enableModelApi === true ? ['--enable-model-api'] : []),
    ]
    section('Start:', [words.join(' ')])
  }
}

const ignore = (): void => undefined

function specOf(name: string): KeySpec<unknown> | undefined {
  return (Object.values(KEYS) as KeySpec<unknown>[]).find((spec) => spec.name === name)
}

function valueFlag(flag: string, path: string | undefined): string[] {
  return path === undefined ? [] : [flag, shownPath(relative('.', path) || '.')]
}
