// Loaded into a server under test (node --import): on SIGUSR2 the wall clock jumps forward by a day, on the
// next one back by two days, and so on.
const DAY_MS = 24 * 60 * 60 * 1000
const real = Date.now
let offset = 0
let next = DAY_MS
const RealDate = Date
class JumpingDate extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [real() + offset] : args))
  }
  static now() {
    return real() + offset
  }
}
globalThis.Date = JumpingDate
process.on('SIGUSR2', () => {
  offset += next
  next = next > 0 ? -2 * DAY_MS : 2 * DAY_MS
  process.stderr.write(`clock-jump ${new RealDate(real() + offset).toISOString()}\n`)
})
