// Loaded into a server under test (node --import): while the file FULL_DISK exists, the file system of / is
// 97 % full.
import { existsSync, promises } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const real = promises.statfs
promises.statfs = async (path, options) => {
  const found = await real(path, options)
  if (path !== '/' || !existsSync(process.env.FULL_DISK)) return found
  const free = Math.floor(found.blocks * 0.03)
  return Object.assign(found, { bfree: free, bavail: free })
}
syncBuiltinESMExports()
