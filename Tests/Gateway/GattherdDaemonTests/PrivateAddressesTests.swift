import GattherdGATT
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// Resolvable private addresses.
@Suite struct PrivateAddressesTests {
    private let device = BluetoothAddress(value: 0xC0FF_EE00_0001)
    private let calls = Locked(0)

    private func addresses(keys: Int = 1) throws -> PrivateAddresses {
        let calls = calls
        var addresses = PrivateAddresses { key, random in
            calls.withLock { $0 += 1 }
            return random ^ UInt32(key.octets[0])
        }
        let all = try (0..<keys).map { number in
            let key = try #require(IdentityKey(Array(repeating: UInt8(7 + number), count: 16)))
            return (device: BluetoothAddress(value: device.value + UInt64(number)), key: key)
        }
        addresses.replace(all)
        return addresses
    }

    @Test func `an address belongs to the device whose key gives its hash`() throws {
        var addresses = try addresses(keys: 3)
        #expect(addresses.device(of: BluetoothAddress(value: 0x4012_3440_1233)) == device)
        #expect(addresses.device(of: BluetoothAddress(value: 0x4012_3440_123D))?.value == device.value + 2)
        #expect(addresses.device(of: BluetoothAddress(value: 0x4012_3440_1234)) == nil)
    }

    @Test func `only addresses of the resolvable kind are tried, each once`() throws {
        var addresses = try addresses()
        #expect(addresses.device(of: BluetoothAddress(value: 0xC012_34C0_1233)) == nil)
        #expect(addresses.device(of: BluetoothAddress(value: 0x0012_3400_1233)) == nil)
        #expect(calls.withLock { $0 } == 0)
        for _ in 0..<5 { _ = addresses.device(of: BluetoothAddress(value: 0x4012_3440_1234)) }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `made-up addresses do not displace a device for good`() throws {
        var addresses = try addresses()
        for number in 0..<UInt64(PrivateAddresses.most * 3) {
            _ = addresses.device(of: BluetoothAddress(value: 0x4000_0000_0000 + number << 24))
        }
        #expect(addresses.device(of: BluetoothAddress(value: 0x4012_3440_1233)) == device)
    }

    @Test func `without a key nothing is resolved`() throws {
        var addresses = try addresses()
        addresses.replace([])
        #expect(addresses.device(of: BluetoothAddress(value: 0x4012_3440_1233)) == nil)
        var none = PrivateAddresses(hash: nil)
        #expect(none.device(of: BluetoothAddress(value: 0x4012_3440_1233)) == nil)
    }
}
