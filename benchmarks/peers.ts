import { readFileSync } from 'node:fs'
import { chooseGenerators } from './generators/choose.ts'
import { PEER_CASES, protocolOf, type PeerCase } from './peers/cases.ts'
import { markdown } from './peers/markdown.ts'
import { measureBatches } from './peers/batches.ts'
import { measureIdle } from './peers/idle.ts'
import { readPeerOptions, type PeerOptions } from './peers/options.ts'
import type { Model, Peer } from './peers/peer.ts'
import { Running } from './peers/running.ts'
import {
  absenceLine,
  batchHead,
  batchLine,
  idleLine,
  newPeerReport,
  rowHead,
  rowLine,
  settingsLines,
  timesHead,
  timesLine,
  verdictLine,
  writePeerReport,
  type PeerReport,
} from './peers/report.ts'
import { verdicts } from './peers/requirements.ts'
import { measurePeers, type PeerRow } from './peers/throughput.ts'
import { measureTimes } from './peers/times.ts'
import { buildPrograms } from './programs.ts'
import { headLines } from './report.ts'
import { runToEnd } from './run-to-end.ts'
import { ours, PEERS } from './targets/peers/index.ts'

/** `npm run bench:peers`: torchserve-ts beside other model servers (docs/internals/peers.md). */

const print = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

type Generators = Awaited<ReturnType<typeof chooseGenerators>>

/** A run, with what it has found so far. */
class PeerBench {
  readonly #options: PeerOptions
  readonly #generators: Generators
  readonly #report: PeerReport

  constructor(options: PeerOptions, generators: Generators) {
    this.#options = options
    this.#generators = generators
    this.#report = newPeerReport(options, generators.rest.name, generators.grpc.name)
  }

  /** @returns how many requirements were not met */
  async run(): Promise<number> {
    print(headLines(this.#report))
    print('load: the CPU time of the load generator as a share of one processor.\n')
    const peers = await this.#installed()
    const begin = Date.now()
    const { measures } = this.#options
    if (measures.includes('load')) await this.#sideBySide(peers)
    if (measures.includes('workers')) await this.#recommendedWorkers(peers)
    if (measures.includes('idle')) await this.#idleStreams(peers)
    if (measures.includes('batches')) await this.#batches(peers)
    this.#report.seconds = Math.round((Date.now() - begin) / 1000)
    this.#report.verdicts = verdicts(this.#report)
    print(`\n${this.#report.verdicts.map(verdictLine).join('\n')}`)
    print(`\n${writePeerReport(this.#report)}, ${this.#report.seconds} s without installing`)
    return this.#report.verdicts.filter(({ ok }) => ok === false).length
  }

  /** torchserve-ts, and the peers that this machine has. */
  async #installed(): Promise<Peer[]> {
    const found: Peer[] = []
    for (const peer of [ours, ...PEERS.filter(({ name }) => this.#options.only.includes(name))]) {
      const installed = await this.#attempt(peer, 'left out, because it cannot be installed', () =>
        peer.install(),
      )
      if (installed === undefined) continue
      const { title, packages, settings } = peer
      this.#report.peers.push({ title, packages, settings, installed })
      print(settingsLines(peer))
      found.push(peer)
    }
    return found
  }

  /** One worker each. */
  async #sideBySide(peers: readonly Peer[]): Promise<void> {
    const servers: Running[] = []
    for (const peer of peers) {
      const models: Model[] = ['echo', 'hundred', 'timed']
      const running = await this.#attempt(peer, 'throughput', () => Running.start(peer, models, 1))
      if (running !== undefined) servers.push(running)
    }
    print(`\nOne worker each, ${this.#options.clients} clients\n${rowHead}`)
    for (const name of PEER_CASES) this.#report.throughput.push(...(await this.#throughput(name, servers)))
    print(`\n${timesHead}`)
    this.#report.times = await measureTimes(servers, this.#options)
    print(this.#report.times.map(timesLine).join('\n'))
    for (const server of servers) await server.stop()
  }

  /** As many workers as each server takes or recommends on this machine, if that is more than one. */
  async #recommendedWorkers(peers: readonly Peer[]): Promise<void> {
    const servers: Running[] = []
    for (const peer of peers.filter(({ recommendedWorkers }) => recommendedWorkers > 1)) {
      const { recommendedWorkers: workers } = peer
      const running = await this.#attempt(peer, `${workers} workers`, () =>
        Running.start(peer, ['echo', 'hundred'], workers, `, ${workers} workers`),
      )
      if (running !== undefined) servers.push(running)
    }
    if (servers.length < 2) return
    print(`\nRecommended number of workers\n${rowHead}`)
    for (const name of PEER_CASES.slice(0, 2))
      this.#report.recommended.push(...(await this.#throughput(name, servers)))
    for (const server of servers) await server.stop()
  }

  async #throughput(name: PeerCase, servers: readonly Running[]): Promise<PeerRow[]> {
    const { rows, absent } = await measurePeers(
      name,
      servers,
      this.#generators[protocolOf(name)],
      this.#options,
    )
    this.#report.absent.push(...absent)
    print([...rows.map(rowLine), ...absent.map(absenceLine)].join('\n'))
    return rows
  }

  async #idleStreams(peers: readonly Peer[]): Promise<void> {
    print('')
    for (const peer of peers) {
      const row = await this.#attempt(peer, 'idle streams', () => measureIdle(peer, this.#options.streams))
      if (row === undefined) continue
      this.#report.idle.push(row)
      print(idleLine(row))
    }
  }

  async #batches(peers: readonly Peer[]): Promise<void> {
    for (const peer of peers) {
      if (peer === ours || peer.startBatches === undefined) continue
      print(`\nBatches, maxBatchDelay 20 ms\n${batchHead}`)
      await this.#attempt(peer, 'batches', () =>
        measureBatches(ours, peer, this.#options, (row) => {
          this.#report.batches.push(row)
          print(batchLine(row))
        }),
      )
    }
  }

  /** A peer that cannot do something is named with its reason. @throws Error when it is torchserve-ts */
  async #attempt<R>(peer: Peer, what: string, run: () => Promise<R>): Promise<R | undefined> {
    try {
      return await run()
    } catch (error) {
      if (peer === ours) throw error
      const reason = error instanceof Error ? error.message : String(error)
      const absence = { target: peer.title, what, reason }
      this.#report.absent.push(absence)
      print(absenceLine(absence))
      return undefined
    }
  }
}

const options = readPeerOptions(process.argv)
await runToEnd(async () => {
  if (options.tables !== undefined) {
    print(markdown(JSON.parse(readFileSync(options.tables, 'utf8')) as PeerReport))
    return 0
  }
  await buildPrograms()
  return (await new PeerBench(options, await chooseGenerators()).run()) === 0 ? 0 : 1
})
