// Loaded into a server under test (node --import): system calls that the file FAULTS names fail. Each line of it
// is `CALL CODE TEXT`: calls whose path, or program, contains TEXT fail with CODE. Every call that failed is a
// line of FAULTS.hits. See faults.ts.
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { constants } from 'node:os'

const require = createRequire(import.meta.url)
const fs = require('node:fs')
const net = require('node:net')
const { ChildProcess } = require('node:child_process')
const { readFileSync, appendFileSync } = fs
const file = process.env.FAULTS

/** The error of a call, if it is to fail. */
function fault(call, path) {
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [name, code, text] = line.split(' ')
    if (name !== call || !String(path).includes(text)) continue
    appendFileSync(`${file}.hits`, `${line}\n`)
    const errno = -constants.errno[code]
    const message = `${code}: made by a test, ${call} '${String(path)}'`
    return Object.assign(new Error(message), { code, errno, syscall: call, path: String(path) })
  }
  return undefined
}

const FILES = {
  mkdir: ['mkdir', 'mkdtemp'],
  open: ['open', 'writeFile', 'readFile', 'opendir'],
  write: ['writeFile', 'appendFile'],
  rename: ['rename', 'link'],
  unlink: ['rm', 'unlink', 'rmdir'],
}
for (const [call, names] of Object.entries(FILES)) {
  for (const name of names) {
    const sync = fs[`${name}Sync`]
    fs[`${name}Sync`] = (path, ...more) => {
      const error = fault(call, path)
      if (error !== undefined) throw error
      return sync(path, ...more)
    }
    const later = fs.promises[name]
    fs.promises[name] = async (path, ...more) => {
      const error = fault(call, path)
      if (error !== undefined) throw error
      return later(path, ...more)
    }
  }
}

// As Node fails: without descriptors there are not even pipes, other errors come after those.
const { spawn } = ChildProcess.prototype
ChildProcess.prototype.spawn = function (options) {
  const error = fault('spawn', options.args.join(' '))
  if (error === undefined) return spawn.call(this, options)
  error.message = `spawn ${options.file} ${error.code}`
  if (error.code !== 'EMFILE') {
    const { emit } = this
    this.emit = (event, ...rest) => emit.call(this, event, ...(event === 'error' ? [error] : rest))
    return spawn.call(this, { ...options, file: '/nowhere/at/all' })
  }
  process.nextTick(() => this.emit('error', error))
  return error.errno
}

const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args
  const path = options?.path ?? options
  const error = typeof path === 'string' ? fault('connect', path) : undefined
  if (error === undefined) return connect.apply(this, args)
  process.nextTick(() => this.destroy(error))
  return this
}

syncBuiltinESMExports()
