import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { freePorts } from '../support/ports.ts'
import { spawn } from '../support/tools.ts'

/** One alert that is pending or fires. */
export interface Alert {
  readonly state: 'pending' | 'firing'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** One series of an instant query: a Unix time in seconds and a value as text. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}

/** One series of a range query: pairs of a Unix time in seconds and a value as text. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (readonly [number, string])[]
}

export interface PrometheusOptions {
  /** Gets its configuration and its data. */
  readonly folder: string
  /** Path of the rules; default: none. */
  readonly rules?: string
  /** What it reads: entries of `scrape_configs`. */
  readonly scrapes: readonly object[]
}

const START_LIMIT_MS = 30_000

/** A real Prometheus on a port of its own that reads the servers every second. */
export class Prometheus {
  readonly #process: ChildProcess
  readonly #url: string

  private constructor(child: ChildProcess, url: string) {
    this.#process = child
    this.#url = url
  }

  /** @throws Error when it does not start */
  static async start({ folder, rules, scrapes }: PrometheusOptions): Promise<Prometheus> {
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: rules === undefined ? [] : [rules],
      scrape_configs: scrapes,
    }
    const file = join(folder, 'prometheus.yml')
    await writeFile(file, stringify(config))
    const [port] = await freePorts(1)
    const child = spawn(
      'prometheus',
      [
        `--config.file=${file}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    )
    const prometheus = new Prometheus(child, `http://127.0.0.1:${port}`)
    await prometheus.#ready()
    return prometheus
  }

  /** Alerts that are pending or fire now. */
  async alerts(): Promise<readonly Alert[]> {
    return (await this.#get<{ alerts: Alert[] }>('alerts', {})).alerts
  }

  /** The rules whose last evaluation failed, with why. */
  async brokenRules(): Promise<string[]> {
    type Rule = { name: string; lastError?: string }
    const { groups } = await this.#get<{ groups: { rules: Rule[] }[] }>('rules', {})
    return groups
      .flatMap(({ rules }) => rules)
      .filter(({ lastError }) => lastError !== undefined && lastError !== '')
      .map(({ name, lastError }) => `${name}: ${lastError}`)
  }

  /** What a query gives at a Unix time in seconds; default: now. @throws Error as Prometheus says */
  async instant(query: string, time = Date.now() / 1000): Promise<readonly Sample[]> {
    return (await this.#get<{ result: Sample[] }>('query', { query, time: String(time) })).result
  }

  /** What a query gave in each second between two Unix times in seconds. @throws Error as Prometheus says */
  async range(query: string, start: number, end: number): Promise<readonly Series[]> {
    const parameters = { query, start: String(start), end: String(end), step: '1' }
    return (await this.#get<{ result: Series[] }>('query_range', parameters)).result
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill()
    await once(this.#process, 'exit')
  }

  async #ready(): Promise<void> {
    const end = performance.now() + START_LIMIT_MS
    while (performance.now() < end && this.#process.exitCode === null) {
      const isReady = await fetch(`${this.#url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
      if (isReady) return
      await sleep(100)
    }
    await this.stop()
    throw new Error('Prometheus did not start')
  }

  async #get<Data>(path: string, parameters: Record<string, string>): Promise<Data> {
    const answer = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`)
    const { status, data, error } = (await answer.json()) as { status: string; data: Data; error?: string }
    if (status !== 'success') throw new Error(error)
    return data
  }
}
