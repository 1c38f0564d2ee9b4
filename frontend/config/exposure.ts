import { lookup } from 'node:dns/promises'
import { ServeError } from '../../common/errors.ts'
import { isLoopback } from '../../common/addresses.ts'
import { KEYS } from './keys.ts'
import { formatListenAddress, type ListenAddress } from './listen-address.ts'
import type { Settings } from './settings.ts'

/** A listener that a start would open on a TCP address. */
interface Door {
  readonly key: string
  readonly host: string
  /** As the operator wrote it. */
  readonly text: string
  readonly tls: boolean
  /** Whether clients can register models through it, with enable_model_api. */
  readonly registers: boolean
}

/**
 * Refuses a start in which other machines could use the server without an identity, or could register models,
 * unless allow_insecure_exposure=true. @throws ServeError CONFIG: one line with the listeners
 */
export async function checkExposure(settings: Settings): Promise<void> {
  const { allowInsecureExposure, enableModelApi } = settings
  if (allowInsecureExposure) return
  const isOpen = ({ tls }: Door): boolean => !asksForIdentity(settings, tls)
  const exposed: Door[] = []
  for (const door of doorsOf(settings)) {
    const isConcerned = isOpen(door) || (enableModelApi && door.registers)
    if (isConcerned && (await isExposed(door.host))) exposed.push(door)
  }
  if (exposed.length === 0) return
  const anyOpen = exposed.some(isOpen)
  const open = exposed.map(({ key, text }) => `${key}=${text}`)
  const why = anyOpen
    ? `clients need no token (${KEYS.disableTokenAuthorization.name})`
    : `clients can register models, which are code (${KEYS.enableModelApi.name})`
  const instead = anyOpen ? 'require tokens' : 'disable the model API'
  const message = `Other machines can reach ${open.join(', ')}, and ${why}: use 127.0.0.1, ${instead}, or set ${KEYS.allowInsecureExposure.name}=true`
  throw new ServeError('CONFIG', message)
}

function doorsOf(settings: Settings): Door[] {
  const doors: (Door | undefined)[] = [
    restDoor(KEYS.inferenceAddress.name, settings.inferenceAddress, true),
    restDoor(KEYS.managementAddress.name, settings.managementAddress, true),
    grpcDoor(KEYS.grpcInferenceAddress.name, settings.grpcInferenceAddress, settings, false),
    grpcDoor(KEYS.grpcManagementAddress.name, settings.grpcManagementAddress, settings, true),
  ]
  const { enableMetricsApi, metricsAddress, openInferenceGrpcPort, tritonGrpcPort } = settings
  if (enableMetricsApi) doors.push(restDoor(KEYS.metricsAddress.name, metricsAddress, false))
  if (openInferenceGrpcPort !== undefined || tritonGrpcPort !== undefined)
    doors.push(
      grpcDoor(KEYS.openInferenceGrpcAddress.name, settings.openInferenceGrpcAddress, settings, true),
    )
  return doors.filter((door) => door !== undefined)
}

/** Undefined for a Unix socket, which the rights of its folder protect. */
function restDoor(key: string, address: ListenAddress, registers: boolean): Door | undefined {
  if (address.kind === 'unix') return undefined
  return { key, host: address.host, text: formatListenAddress(address), tls: address.tls, registers }
}

function grpcDoor(key: string, host: string, { enableGrpcSsl: tls }: Settings, registers: boolean): Door {
  return { key, host, text: host, tls, registers }
}

/** A name is as exposed as any of its addresses. One that is unknown cannot be listened on. */
async function isExposed(host: string): Promise<boolean> {
  const addresses = await lookup(host, { all: true }).catch(() => [])
  return addresses.some(({ address }) => !isLoopback(address))
}

/** What decides who may call. */
export type IdentitySettings = Pick<Settings, 'disableTokenAuthorization'> &
  Partial<Pick<Settings, 'apiKeysFile' | 'jwtIssuer' | 'tlsClientCa' | 'tlsClientAuth'>>

/**
 * Whether nobody gets past a listener without a token, a key or a certificate. False: anybody who reaches it
 * may do everything there.
 *
 * A certificate that TLS requires counts, as only holders can connect. One that it only requests counts no
 * more than the keys file that gives it rights.
 * @param isTls whether the listener speaks TLS
 */
export function asksForIdentity(settings: IdentitySettings, isTls: boolean): boolean {
  if (!settings.disableTokenAuthorization) return true
  if (settings.apiKeysFile !== undefined || settings.jwtIssuer !== undefined) return true
  return isTls && settings.tlsClientCa !== undefined && settings.tlsClientAuth === 'require'
}
