import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { REPOSITORY } from '../support/server-process.ts'
import { execa } from '../support/tools.ts'
import type { Content } from './chart-objects.ts'

export const CHART = join(REPOSITORY, 'deploy', 'helm', 'torchserve-ts')
const PROGRAM = join(import.meta.dirname, 'chart')
/** Folder with one file for each tested set of values. */
export const VALUES = join(PROGRAM, 'values')
/** A cold build takes minutes on two busy cores. */
const BUILD_LIMIT_MS = 1_200_000

/** What became of the chart with one set of values. */
export interface Rendered {
  name: string
  /** Why Helm refuses the values or cannot render the chart; empty: it does. */
  error: string
  lint: string[]
  notes: string
  objects: { template: string; content: Content; known: boolean; problem: string }[]
}

/** A set of values by the name of its file. */
export interface ValueSet {
  name: string
  values: unknown
}

/** What Prometheus' own parser found in a query; an empty error: nothing wrong. */
export interface ParsedQuery {
  error: string
  names: string[] | null
}

/** The program that renders the chart with Helm's own code (chart/main.go). */
export class ChartProgram {
  readonly #binary: string

  private constructor(binary: string) {
    this.#binary = binary
  }

  /** @param folder gets the program */
  static async build(folder: string): Promise<ChartProgram> {
    const binary = join(folder, 'chart')
    await execa('go', ['build', '-o', binary, '.'], { cwd: PROGRAM, timeout: BUILD_LIMIT_MS })
    return new ChartProgram(binary)
  }

  /** Lints and renders the chart with each set, as the release `story` in the namespace `models`. */
  async render(sets: readonly ValueSet[]): Promise<Rendered[]> {
    const { cases } = await this.#ask<{ cases: Rendered[] | null }>({ chart: CHART, cases: sets })
    return cases ?? []
  }

  async parse(queries: readonly string[]): Promise<ParsedQuery[]> {
    const { queries: parsed } = await this.#ask<{ queries: ParsedQuery[] | null }>({ queries })
    return parsed ?? []
  }

  async #ask<Result>(job: object): Promise<Result> {
    const { stdout } = await execa(this.#binary, [], { input: JSON.stringify(job), maxBuffer: 1e8 })
    return JSON.parse(stdout) as Result
  }
}

/** One of the tested sets. */
export function valueSet(file: string): ValueSet {
  return { name: file, values: parse(readFileSync(join(VALUES, file), 'utf8')) as unknown }
}
