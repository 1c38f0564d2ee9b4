import { basename, dirname } from 'node:path'
import { parseXml, XmlElement } from '@rgrove/parse-xml'
import { ownValue } from '../../common/json.ts'
import type { Environment } from './properties.ts'
import type { LogFileName } from './settings.ts'

/** The logs that TorchServe writes, with the logger of each. */
const LOGGERS = {
  access_log: 'ACCESS_LOG',
  ts_log: 'org.pytorch.serve',
  model_log: 'MODEL_LOG',
  ts_metrics: 'TS_METRICS',
  model_metrics: 'MODEL_METRICS',
} as const satisfies Partial<Record<LogFileName, string>>

type Log = keyof typeof LOGGERS
const LOGS = Object.keys(LOGGERS) as Log[]

/** From the most lines to none. */
const LEVELS = ['all', 'trace', 'debug', 'info', 'warn', 'error', 'fatal', 'off']
/** TorchServe's patterns, which are those of log_format=text. */
const PATTERNS: ReadonlySet<string | undefined> = new Set([
  '%d{ISO8601} - %m%n',
  '%d{ISO8601} [%-5p] %t %c - %m%n',
])

interface Appender {
  readonly kind: 'console' | 'file' | 'other'
  readonly fileName: string | undefined
  /** Of an appender that passes lines on (Async, Failover). */
  readonly refs: readonly string[]
}

interface Logger {
  readonly level: string | undefined
  readonly additive: boolean
  readonly refs: readonly string[]
}

export interface Log4jConfig {
  /** Texts of keys. */
  readonly keys: ReadonlyMap<string, string>
  /** What has no effect, for one line. */
  readonly unread: readonly string[]
}

/**
 * Reads from a log4j2.xml of TorchServe which logs reach files and the console, where the files are, and the
 * level. Names of files, patterns, rules for rolling, filters and other loggers are not read.
 * @throws Error for what is no XML, or has no element Configuration
 */
export function readLog4j(text: string, env: Environment): Log4jConfig {
  return new Log4jFile(text, env).config()
}

class Log4jFile {
  readonly #env: Environment
  readonly #unread: string[] = []
  readonly #properties = new Map<string, string>()
  readonly #appenders = new Map<string, Appender>()
  readonly #loggers = new Map<string, Logger>()

  constructor(text: string, env: Environment) {
    this.#env = env
    const { root } = parseXml(text)
    if (root?.name.toLowerCase() !== 'configuration')
      throw new Error('it must have the element Configuration')
    for (const { attributes, text: value } of children(root, 'properties'))
      this.#properties.set(attributes['name'] ?? '', attributes['value'] ?? value.trim())
    for (const each of children(root, 'appenders')) this.#addAppender(each)
    for (const each of children(root, 'loggers')) this.#addLogger(each)
    const own = new Set<string>(['', ...Object.values(LOGGERS)])
    const others = [...this.#loggers.keys()].filter((name) => !own.has(name))
    if (others.length > 0) this.#unread.push(`loggers ${others.join(', ')}`)
  }

  config(): Log4jConfig {
    const onConsole = LOGS.filter((log) => this.#reached(log).some(({ kind }) => kind === 'console'))
    const files = new Map(LOGS.map((log) => [log, this.#fileOf(log)] as const).filter(([, file]) => file))
    const level = LEVELS.indexOf(this.#level(LOGGERS.ts_log))
    const keys = new Map([
      ['log_level', LEVELS[Math.min(Math.max(level, 2), 5)]!],
      ['log_console', onConsole.join(',') || 'none'],
      // TorchServe has no audit log.
      ['log_files', [...files.keys(), 'audit_log'].join(',')],
    ])
    const folder = (...logs: Log[]): string | undefined => {
      const found = logs.flatMap((log) => files.get(log) ?? [])
      const folders = new Set(found.map((file) => dirname(file)))
      if (folders.size > 1)
        this.#unread.push(`folders other than ${dirname(found[0]!)} of ${logs.join(', ')}`)
      if (found[0] === undefined || !found[0].includes('${')) return found[0] && dirname(found[0])
      this.#unread.push(`the file name ${found[0]}`)
      return undefined
    }
    const model = this.#level(LOGGERS.model_log)
    if (model !== 'off' && LEVELS.indexOf(model) > Math.max(level, 3))
      this.#unread.push(`level ${model} of MODEL_LOG`)
    const [logs, metrics] = [
      folder('ts_log', 'access_log', 'model_log'),
      folder('ts_metrics', 'model_metrics'),
    ]
    if (logs !== undefined) keys.set('LOG_LOCATION', logs)
    if (metrics !== undefined) keys.set('METRICS_LOCATION', metrics)
    return { keys, unread: this.#unread }
  }

  #addAppender(element: XmlElement): void {
    const { name: tag, attributes } = element
    const type = (attributes['type'] ?? tag).toLowerCase()
    const name = attributes['name'] ?? tag
    const refs = refsOf(element)
    const isFile = /^(rolling)?(randomaccess)?file$/.test(type)
    const kind = type === 'console' ? 'console' : isFile ? 'file' : 'other'
    if (kind === 'other' && refs.length === 0) this.#unread.push(`appender ${name} (${tag})`)
    for (const child of elements(element)) {
      const isLayout = child.name.toLowerCase().endsWith('layout')
      const isKnown = child.name === 'PatternLayout' && PATTERNS.has(child.attributes['pattern'])
      if (isLayout && !isKnown) this.#unread.push(`${child.name} of ${name}`)
      if (child.name.toLowerCase().endsWith('filter')) this.#unread.push(`${child.name} of ${name}`)
      if (child.name !== 'Policies') continue
      for (const { name: policy, attributes: limits } of elements(child))
        if (limits['size'] !== undefined && limits['size'].replace(/\s/g, '') !== '100MB')
          this.#unread.push(`${policy} ${limits['size']} of ${name}`)
    }
    this.#appenders.set(name, { kind, refs, fileName: this.#resolved(attributes['fileName']) })
  }

  #addLogger(element: XmlElement): void {
    const isRoot = element.name.toLowerCase().endsWith('root')
    const { name, level, additivity } = element.attributes
    this.#loggers.set(isRoot ? '' : (name ?? ''), {
      level: this.#resolved(level)?.toLowerCase(),
      additive: additivity !== 'false',
      refs: refsOf(element),
    })
  }

  /** The logger and those above it, up to the root. */
  *#chain(name: string): Generator<Logger> {
    for (let at = name; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
      const logger = this.#loggers.get(at)
      if (logger !== undefined) yield logger
    }
    const root = this.#loggers.get('')
    if (root !== undefined) yield root
  }

  #level(name: string): string {
    for (const { level } of this.#chain(name)) if (level !== undefined && LEVELS.includes(level)) return level
    return 'error' // log4j's own default
  }

  /** The appenders that the lines of a log reach. Those of requests and metrics have the level info. */
  #reached(log: Log): Appender[] {
    const names = new Set<string>()
    const strictest = log === 'ts_log' || log === 'model_log' ? 'off' : 'warn'
    if (LEVELS.indexOf(this.#level(LOGGERS[log])) >= LEVELS.indexOf(strictest)) return []
    for (const { refs, additive } of this.#chain(LOGGERS[log])) {
      for (const ref of refs) names.add(ref)
      if (!additive) break
    }
    for (const name of names) for (const ref of this.#appenders.get(name)?.refs ?? []) names.add(ref)
    return [...names].flatMap((name) => this.#appenders.get(name) ?? [])
  }

  /** The file of a log: that of its name, else the first one; lines of others only pass through ts_log. */
  #fileOf(log: Log): string | undefined {
    const files = this.#reached(log).flatMap(({ kind, fileName }) =>
      kind === 'file' ? (fileName ?? []) : [],
    )
    const own = files.find((file) => basename(file) === `${log}.log`)
    if (own !== undefined) return own
    const first = log === 'ts_log' ? files[0] : files.find((file) => !this.#isFileOf('ts_log', file))
    if (first !== undefined) this.#unread.push(`the name ${basename(first)} of ${log}.log`)
    return first
  }

  #isFileOf(log: Log, file: string): boolean {
    return this.#reached(log).some(({ fileName }) => fileName === file)
  }

  /** With the lookups of log4j: `${env:NAME:-default}`, `${property}`. */
  #resolved(text: string | undefined): string | undefined {
    return text?.replace(/\$\{(?:(\w+):)?([\w.]+)(?::-([^}]*))?\}/g, (whole, kind, name: string, other) => {
      const value = kind === 'env' ? ownValue(this.#env, name) : kind ? undefined : this.#properties.get(name)
      return value ?? (other as string | undefined) ?? whole
    })
  }
}

function elements({ children: all }: XmlElement): XmlElement[] {
  return all.filter((child) => child instanceof XmlElement)
}

/** The elements in an element of the root, which log4j finds whatever the case of its name. */
function children(root: XmlElement, name: string): XmlElement[] {
  return elements(root)
    .filter((each) => each.name.toLowerCase() === name)
    .flatMap(elements)
}

function refsOf(element: XmlElement): string[] {
  return elements(element)
    .filter(({ name }) => /^appender-?ref$/i.test(name))
    .flatMap(({ attributes }) => attributes['ref'] ?? [])
}
