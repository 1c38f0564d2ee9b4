import { join } from 'node:path'
import { claimFolder } from '../../model-archiver/owner-file.ts'
import type { RunningServer } from '../server-api.ts'
import { createSocketDir, type SocketDir } from '../workers/worker-folder.ts'
import { claimPidFile, pidFilePath, type PidRecord, removePidFile, rewritePidFile } from './pid-file.ts'
import { alreadyRunning, claimPath, workingFolder } from './servers.ts'
import { StatusSocket } from './status-socket.ts'

/** What no second server may have: the working folder with logs and keys; or nothing but itself. */
export type Claim = 'folder' | 'process'

interface EntryOptions {
  /** Milliseconds that stopping may take. */
  readonly stopMs: number
  readonly claims: Claim
  /** Configuration file that the user named. */
  readonly config?: string
  /** Reports what does not keep the server from serving or from ending, as one line. */
  readonly warn: (line: string) => void
}

/** How other commands find this server: its pid files, and the socket that tells its status. */
export class ServerEntry {
  readonly #paths: string[] = []
  readonly #sockets: SocketDir
  readonly #status: StatusSocket
  readonly #warn: (line: string) => void
  #record: PidRecord

  /** @throws ServeError CONFLICT when another server has what this one claims */
  constructor(tempDir: string, { stopMs, claims, config, warn }: EntryOptions) {
    this.#warn = warn
    const folder = workingFolder()
    const path = claimPath(tempDir, claims === 'folder' ? folder : `${folder}\n${process.pid}`)
    this.#sockets = createSocketDir(tempDir)
    const socket = join(this.#sockets.path, 'status.sock')
    this.#record = {
      pid: process.pid,
      stopMs,
      folder,
      socket,
      ...(claims === 'process' && { inTerminal: true }),
      ...(config !== undefined && { config }),
    }
    this.#status = new StatusSocket(socket)
    try {
      claimFolder(this.#sockets.path)
      if (!claimPidFile(path, this.#record)) throw alreadyRunning(path)
      this.#paths.push(path)
      this.#claimFirst(tempDir)
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** From now on the status is that of this server. */
  tell(server: RunningServer): Promise<void> {
    return this.#status.open(server)
  }

  /** Says to other commands that this server will end, if its files can still be written. */
  markStopping(): void {
    this.#record = { ...this.#record, stopping: true }
    for (const path of this.#paths) {
      try {
        rewritePidFile(path, this.#record)
      } catch (error) {
        this.#warn(`Other commands cannot see that this server stops: ${(error as Error).message}`)
      }
    }
  }

  /** Never throws. */
  remove(): void {
    for (const path of this.#paths) removePidFile(path, process.pid, this.#warn)
    this.#status.close()
    this.#sockets.remove(this.#warn)
  }

  /** TorchServe's pid file is that of the first server; it belongs to another user's server at worst. */
  #claimFirst(tempDir: string): void {
    const path = pidFilePath(tempDir)
    try {
      if (claimPidFile(path, this.#record)) this.#paths.push(path)
    } catch {
      // The server has a pid file of its own.
    }
  }
}
