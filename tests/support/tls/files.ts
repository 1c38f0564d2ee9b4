import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A pair for localhost and 127.0.0.1 that signs itself, for tests only; valid for a hundred years. */
export const CERT_FILE = join(import.meta.dirname, 'cert.pem')
export const KEY_FILE = join(import.meta.dirname, 'key.pem')
/** The same with an RSA key of 2048 bits. */
export const RSA_CERT_FILE = join(import.meta.dirname, 'rsa-cert.pem')
export const RSA_KEY_FILE = join(import.meta.dirname, 'rsa-key.pem')
/** The first pair as PKCS12, password `secret`. */
export const KEYSTORE_FILE = join(import.meta.dirname, 'keystore.p12')

export const CERT = readFileSync(CERT_FILE)
export const KEY = readFileSync(KEY_FILE)
