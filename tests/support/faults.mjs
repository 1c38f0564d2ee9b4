// Loaded into a server under test, its threads and its workers (NODE_OPTIONS): system calls that the file FAULTS
// names fail. Each line of it is `PLACE CALL CODE TEXT`: calls whose path, or program, contains TEXT fail with
// CODE; with `$` at its end, those whose path ends with TEXT. Every call that failed is a line of FAULTS.hits.
// See faults.ts.
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { constants } from 'node:os'

const require = createRequire(import.meta.url)
const fs = require('node:fs')
const net = require('node:net')
const threads = require('node:worker_threads')
const { ChildProcess } = require('node:child_process')
const { readFileSync, appendFileSync } = fs
const file = process.env.FAULTS
const isWorker = process.argv[1]?.endsWith('backend-worker/main.js') === true
const place = !threads.isMainThread ? 'thread' : isWorker ? 'worker' : 'server'

const matches = (path, text) => (text.endsWith('$') ? path.endsWith(text.slice(0, -1)) : path.includes(text))

/** The error of a call, if it is to fail. @param to the other path of a rename */
function fault(call, path, to) {
  const paths = [path, to].filter((each) => each !== undefined).map(String)
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [where, name, code, text] = line.split(' ')
    if (where !== place || name !== call || !paths.some((each) => matches(each, text))) continue
    appendFileSync(`${file}.hits`, `${line}\n`)
    const errno = -constants.errno[code]
    const message = `${code}: made by a test, ${call} '${paths.join("' -> '")}'`
    return Object.assign(new Error(message), { code, errno, syscall: call, path: paths[0] })
  }
  return undefined
}

/** The calls of the system that functions of `fs` make. */
const FUNCTIONS = {
  mkdir: ['mkdir'],
  mkdtemp: ['mkdir'],
  symlink: ['mkdir'],
  open: ['open'],
  opendir: ['open'],
  readdir: ['open'],
  readFile: ['open'],
  writeFile: ['open', 'write'],
  appendFile: ['open', 'write'],
  rename: ['rename'],
  link: ['rename'],
  rm: ['unlink'],
  unlink: ['unlink'],
  rmdir: ['unlink'],
}
const TWO_PATHS = new Set(['rename', 'link'])

function faultOf(name, args) {
  const [first, second] = args
  const path = name === 'symlink' ? second : first
  for (const call of FUNCTIONS[name]) {
    const error = fault(call, path, TWO_PATHS.has(name) ? second : undefined)
    if (error !== undefined) return error
  }
  return undefined
}

/** The paths of files that are open. */
const opened = new Map([
  [1, '/dev/stdout'],
  [2, '/dev/stderr'],
])

/** A disk that fills up has made the file. */
const leavesFile = (name, error) => name.endsWith('File') && error.syscall === 'write'

for (const name of Object.keys(FUNCTIONS)) {
  const now = fs[`${name}Sync`]
  fs[`${name}Sync`] = (...args) => {
    const error = faultOf(name, args)
    if (error !== undefined) {
      if (leavesFile(name, error)) now(args[0], '', args[2])
      throw error
    }
    const result = now(...args)
    if (name === 'open') opened.set(result, String(args[0]))
    return result
  }
  const soon = fs[name]
  fs[name] = (...args) => {
    const done = args.at(-1)
    const error = faultOf(name, args)
    if (error !== undefined) process.nextTick(done, error)
    else if (name !== 'open') soon(...args)
    else
      soon(...args.slice(0, -1), (failure, fd) => {
        if (!failure) opened.set(fd, String(args[0]))
        done(failure, fd)
      })
  }
  const later = fs.promises[name]
  fs.promises[name] = async (...args) => {
    const error = faultOf(name, args)
    if (error !== undefined) {
      if (leavesFile(name, error)) await later(args[0], '', args[2])
      throw error
    }
    const result = await later(...args)
    return name === 'open' ? withFaults(result, args[0]) : result
  }
}

/** A handle whose writes can fail. */
function withFaults(handle, path) {
  for (const name of ['write', 'writeFile', 'appendFile', 'datasync', 'sync']) {
    const real = handle[name].bind(handle)
    handle[name] = async (...args) => {
      const error = fault('write', path)
      if (error !== undefined) throw error
      return real(...args)
    }
  }
  return handle
}

const { write, writeSync } = fs
fs.write = (fd, ...args) => {
  const error = fault('write', opened.get(fd))
  if (error === undefined) write(fd, ...args)
  else process.nextTick(args.at(-1), error, 0)
}
fs.writeSync = (fd, ...args) => {
  const error = fault('write', opened.get(fd))
  if (error !== undefined) throw error
  return writeSync(fd, ...args)
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
  this.spawnargs = options.args
  process.nextTick(() => this.emit('error', error))
  return error.errno
}

const { Worker } = threads
threads.Worker = class extends Worker {
  constructor(module, options) {
    const error = fault('spawn', module)
    if (error !== undefined) throw error
    super(module, options)
  }
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

const { listen } = net.Server.prototype
net.Server.prototype.listen = function (...args) {
  const path = args[0]?.path ?? args[0]
  const error = typeof path === 'string' ? fault('listen', path) : undefined
  if (error === undefined) return listen.apply(this, args)
  process.nextTick(() => this.emit('error', error))
  return this
}

syncBuiltinESMExports()
