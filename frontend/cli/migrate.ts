import { readFile } from 'node:fs/promises'
import { basename, relative } from 'node:path'
import { shownPath } from '../../common/curl-lines.ts'
import { ServeError } from '../../common/errors.ts'
import { pathExists } from '../../common/files.ts'
import { locateModel } from '../../model-archiver/locate.ts'
import { listStore } from '../../model-archiver/store.ts'
import { checkExposure, asksForIdentity } from '../config/exposure.ts'
import { KEYS, KEYS_BY_NAME } from '../config/keys.ts'
import { loadSettings, type ConfigFlags, type StartSettings } from '../config/load-settings.ts'
import { parseProperties, type Entry, shownValue } from '../config/properties.ts'
import { PATH, PORT } from '../config/value-types.ts'
import { ArchiveReport, checkUnpacked, checkFolder } from './check-archive.ts'
import { startupRequests } from './check-models.ts'
import { describeFailure } from './describe-failure.ts'
import { newCommand, runCommand } from './run-command.ts'
import type { Output } from './output.ts'

const EXAMPLES = `
Example:
    $ torchserve-ts migrate --model-store model_store

Starts nothing, and changes no file. Status 0: add the printed lines, and the printed command starts the
server; 1: something is left to do by hand. More: docs/migrating-from-torchserve.md`

/**
 * The command `torchserve-ts migrate`: what a configuration of TorchServe needs to start here.
 * @returns the exit status
 */
export function runMigrate(argv: readonly string[], output: Output): Promise<number> {
  const program = newCommand('torchserve-ts migrate', output)
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
    .addHelpText('after', EXAMPLES)
  return runCommand(program, argv, output, () =>
    new Migration(program.args[0] ?? 'config.properties', program.opts<ConfigFlags>(), output).run(),
  )
}

class Migration {
  readonly #path: string
  readonly #flags: ConfigFlags
  readonly #output: Output
  /** What the configuration lacks, and why. */
  readonly #entries: (Entry & { readonly why: string })[] = []
  /** Further lines for the configuration, as comments. */
  readonly #hints: string[] = []
  readonly #problems: string[] = []

  constructor(path: string, flags: ConfigFlags, output: Output) {
    this.#path = path
    this.#flags = flags
    this.#output = output
  }

  async run(): Promise<number> {
    const text = await readFile(this.#path, 'utf8').catch((cause: unknown) => {
      throw new ServeError('CONFIG', `The config file cannot be read: ${(cause as Error).message}`, { cause })
    })
    // It would win over the file that is checked.
    const { TS_CONFIG_FILE: _, ...env } = process.env
    try {
      this.#fixValues(parseProperties(text, this.#path, undefined))
      const flags = { ...this.#flags, tsConfig: this.#path, configSnapshots: false, entries: this.#entries }
      await this.#check(await loadSettings(flags, env))
    } catch (error) {
      this.#problems.push(describeFailure(error))
    }
    this.#print()
    return this.#problems.length === 0 ? 0 : 1
  }

  /** Replaces values that are not valid here. The last line of a key counts. */
  #fixValues(given: readonly Entry[]): void {
    for (const { name, text, origin } of new Map(given.map((entry) => [entry.name, entry])).values()) {
      const spec = KEYS_BY_NAME.get(name)
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
    for (const spec of KEYS_BY_NAME.values()) {
      const entry = spec.type === PATH ? entries.get(spec.name) : undefined
      if (entry === undefined || spec.from === 'environment' || (await pathExists(entry.text))) continue
      const flag = spec.name.endsWith('_store')
        ? `: name the folder with --${spec.name.replace('_', '-')}`
        : ''
      this.#problems.push(`${entry.origin}: ${spec.name} names ${entry.text}, which is not here${flag}`)
    }
    await checkExposure(settings).catch((error: unknown) => {
      this.#add(describeFailure(error), KEYS.allowInsecureExposure.name, 'true')
    })
    if (!asksForIdentity(settings, false))
      this.#hints.push(
        '# Without tokens the server refuses the public names of a proxy (Host), and web pages (Origin). To allow them:',
        '#allowed_hosts=public.name',
        '#cors_allowed_origin=https://app.example.com',
      )
    if (settings.modelStore === undefined)
      this.#problems.push('No model_store is configured: name the folder of the archives with --model-store')
    else if (await pathExists(settings.modelStore)) await this.#checkArchives(loaded, settings.modelStore)
  }

  async #checkArchives({ settings: configured, modelSource }: StartSettings, store: string): Promise<void> {
    const { tempDir, dispose } = await checkFolder()
    const settings = { ...configured, tempDir }
    try {
      const atStart = await startupRequests(settings, modelSource.hint)
      if (atStart.length === 0)
        this.#hints.push(
          '# The start loads no model: clients register them. To load all of the store:',
          '#load_models=all',
        )
      const urls =
        atStart.length > 0
          ? atStart.map(({ url }) => url)
          : (await listStore(store)).models.map(({ location }) => location)
      for (const url of urls) {
        if (/^https?:/i.test(url)) continue
        const { path } = await locateModel(url, { ...settings, trusted: true })
        const report = new ArchiveReport()
        await checkUnpacked(path, settings, report, this.#output)
        for (const line of report.differs) this.#output.out(`  ${line}`)
        for (const line of [...report.missing, ...report.broken])
          this.#problems.push(`${basename(path)}: ${line}`)
      }
    } finally {
      await dispose()
    }
  }

  #add(why: string, key: string, text: string): void {
    this.#entries.push({ name: key, text, origin: 'migrate', why })
  }

  #print(): void {
    const { modelStore, workflowStore, models, logConfig, disableTokenAuth, enableModelApi } = this.#flags
    const section = (title: string, lines: readonly string[]): void => {
      if (lines.length > 0) for (const line of ['', title, ...lines]) this.#output.out(line)
    }
    section('By hand:', this.#problems)
    const lines = this.#entries.flatMap(({ why, name, text }) => [`# ${why}`, `${name}=${text}`])
    section(`Add to ${this.#path}:`, [...lines, ...this.#hints])
    const words = [
      ...['torchserve-ts', '--start', '--ts-config', shownPath(this.#path)],
      ...valueFlag('--model-store', modelStore),
      ...valueFlag('--workflow-store', workflowStore),
      ...(models === undefined ? [] : ['--models', ...models.map(shownPath)]),
      ...valueFlag('--log-config', logConfig),
      ...(disableTokenAuth === true ? ['--disable-token-auth'] : []),
      ...(enableModelApi === true ? ['--enable-model-api'] : []),
    ]
    section('Start:', [words.join(' ')])
  }
}

const ignore = (): void => undefined

function valueFlag(flag: string, path: string | undefined): string[] {
  return path === undefined ? [] : [flag, shownPath(relative('.', path) || '.')]
}
