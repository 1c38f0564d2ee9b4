import { describe, expect, test } from '@jest/globals'
import { Budget } from '../../../frontend/edge/admission/budget.ts'

test('one address has at most half, whatever number of leases; others have the rest', () => {
  const budget = new Budget(10)
  const first = budget.lease('192.0.2.1')
  const second = budget.lease('192.0.2.1')
  expect([first.take(3), second.take(2), second.take(1)]).toEqual([undefined, undefined, 'address'])
  const other = budget.lease('192.0.2.2')
  const third = budget.lease('192.0.2.3')
  expect([other.take(4), third.take(2), third.take(1)]).toEqual([undefined, 'all', undefined])
  first.give(1)
  expect([second.take(1), budget.held]).toEqual([undefined, 10])
})

test('an odd number is rounded up, so that one place can be taken', () => {
  expect(new Budget(1).lease('192.0.2.1').take(1)).toBeUndefined()
})

test('a lease that is closed gives back what it held, once, and counts nothing from then on', () => {
  const budget = new Budget(4)
  const lease = budget.lease('192.0.2.1')
  lease.take(2)
  lease.close()
  lease.close()
  lease.give(2)
  expect([lease.take(100), budget.held]).toEqual([undefined, 0])
  expect(budget.lease('192.0.2.1').take(2)).toBeUndefined()
})

test('a lease can have a limit of its own', () => {
  const budget = new Budget(100)
  const lease = budget.lease('192.0.2.1')
  lease.limit = 5
  expect([lease.take(6), lease.take(5), budget.held]).toEqual(['address', undefined, 5])
})

test('clients on a Unix socket share the whole', () => {
  const budget = new Budget(4)
  expect([budget.lease(undefined).take(4), budget.lease(undefined).take(1)]).toEqual([undefined, 'all'])
})

describe('addresses', () => {
  test.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', 'a network of IPv6 (64 bits)'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::', 'the same, written out and short'],
    ['::ffff:192.0.2.1', '192.0.2.1', 'an IPv4 address, mapped and not'],
    ['::1', '::2', 'the loopback network'],
  ])('%s and %s count together: %s', (one, other) => {
    const budget = new Budget(2)
    expect([budget.lease(one).take(1), budget.lease(other).take(1)]).toEqual([undefined, 'address'])
  })

  test.each([
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['2001:db8::1', '2001:db8:0:1::1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
    ['192.0.2.1', '192.0.2.2'],
  ])('%s and %s count apart', (one, other) => {
    const budget = new Budget(2)
    expect([budget.lease(one).take(1), budget.lease(other).take(1)]).toEqual([undefined, undefined])
  })
})
