import { once } from 'node:events'
import { createServer } from 'node:net'
import { KEYS } from '../config/keys.ts'
import { formatListenAddress } from '../config/listen-address.ts'
import type { Entry } from '../config/properties.ts'
import { tempDirOf } from './pid-file.ts'

const MAX_PORT = 65_535

/**
 * What a command sets that serves without a configuration: all REST APIs on one port, without tokens, and the
 * others on free ones of this machine only. Overrides the configuration file.
 * @param origin the command, for messages
 * @param own further keys
 */
export function localEntries(
  origin: string,
  { host = '127.0.0.1', port }: { host?: string; port: number },
  own: Readonly<Record<string, string>>,
): Entry[] {
  const address = formatListenAddress({ kind: 'tcp', tls: false, host, port })
  // Nothing is written there.
  const logs = tempDirOf(process.env)
  const texts: Readonly<Record<string, string>> = {
    [KEYS.logLocation.name]: logs,
    [KEYS.metricsLocation.name]: logs,
    inference_address: address,
    management_address: address,
    enable_metrics_api: 'false',
    grpc_inference_address: '127.0.0.1',
    grpc_inference_port: '0',
    grpc_management_address: '127.0.0.1',
    grpc_management_port: '0',
    disable_token_authorization: 'true',
    cors_allowed_origin: 'loopback',
    default_workers_per_model: '1',
    ...own,
  }
  return Object.entries(texts).map(([name, text]) => ({ name, text, origin }))
}

/** The port if it is free on this machine, else the next one that is. Port 0 stays. */
export async function freePort(port: number): Promise<number> {
  let free = port
  while (free !== 0 && free < MAX_PORT && (await isTaken(free))) free += 1
  return free
}

/** A port that cannot be used for another reason is not taken: the start says why. */
async function isTaken(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
  }
  probe.close()
  await once(probe, 'close')
  return false
}
