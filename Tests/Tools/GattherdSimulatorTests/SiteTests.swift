import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdSimulator

/// Several gateways in one air.
///
/// In these sites a peripheral of -60 dBm at 1 m reaches 31.6 m.
@Suite struct SiteTests {
    private static let dev = "dev_C0_FF_EE_00_00_01"

    private static func site(_ peripheral: String, air: String = "noise: 0") throws -> Bench {
        try Bench(
            """
            air: {exponent: 2, sensitivity: -90, \(air)}
            gateways: [{name: west, at: [0, 0]}, {name: east, at: [40, 0]}]
            peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: heart-rate, rate: 10, \(peripheral)}]
            """
        )
    }

    private func rssi(_ bench: inout Bench, _ gateway: Int) -> String {
        bench.gateway = gateway
        return bench.get(Bench.device, "RSSI")
    }

    private func scan(_ bench: inout Bench) {
        for gateway in bench.site.gateways.indices {
            bench.gateway = gateway
            bench.scan()
        }
        bench.gateway = 0
    }

    @Test func `each gateway hears a peripheral with its own strength`() throws {
        var bench = try Self.site("at: [10, 0]")
        scan(&bench)
        #expect(rssi(&bench, 0).hasSuffix("-80"))
        #expect(rssi(&bench, 1).hasSuffix("-90"))
    }

    @Test func `a peripheral beyond the sensitivity is unknown`() throws {
        var bench = try Self.site("at: [8, 0]")
        scan(&bench)
        bench.wait(.seconds(10))
        #expect(rssi(&bench, 0).hasSuffix("-78"))
        #expect(bench.site.gateways[1].world.devices.isEmpty)
    }

    @Test func `a filter by strength applies to the strength at the gateway`() throws {
        var bench = try Self.site("at: [10, 0]")
        let filter = DBusValue.properties([Property("RSSI", .int16(-85))])
        for gateway in 0...1 {
            bench.gateway = gateway
            bench.call(Bench.adapter, "SetDiscoveryFilter", filter)
        }
        scan(&bench)
        #expect(bench.site.gateways.map(\.world.devices.count) == [1, 0])
    }

    @Test func `adapters restricts a peripheral to gateways or to their adapters`() throws {
        var bench = try Bench(
            """
            gateways: [{name: west, at: [0, 0], adapters: [{}, {}]}, {name: east, at: [0, 0]}]
            peripherals:
              - {name: p, address: 'C0:FF:EE:00:00:01', kind: battery, at: [1, 1], adapters: [east]}
              - {name: q, address: 'C0:FF:EE:00:00:02', kind: battery, at: [1, 1], adapters: [west/hci1]}
            """
        )
        scan(&bench)
        bench.scan("/org/bluez/hci1")
        #expect(bench.site.gateways[0].world.devices.keys.map { [$0.adapter, $0.peripheral] } == [[1, 1]])
        #expect(bench.site.gateways[1].world.devices.keys.map { [$0.adapter, $0.peripheral] } == [[2, 0]])
    }

    @Test func `all gateways hear the same advertisements at the same instants`() throws {
        var bench = try Self.site(
            "at: [20, 0], advertise: {interval: 100ms, turn: 100ms, manufacturer_data: {0xffff: ['01', '02', '03']}}"
        )
        let filter = DBusValue.properties([Property("DuplicateData", .boolean(true))])
        for gateway in 0...1 {
            bench.gateway = gateway
            bench.call(Bench.adapter, "SetDiscoveryFilter", filter)
            bench.call(Bench.adapter, "StartDiscovery")
            bench.wait(.milliseconds(133))
        }
        bench.wait(.seconds(1))
        var heard: [[[DBusValue]]] = [[], []]
        for _ in 0..<300 {
            let outputs = bench.waitForOutputs(.milliseconds(10))
            for gateway in 0...1 {
                heard[gateway].append(
                    outputs.filter { $0.gateway == gateway }.compactMap(\.effect.manufacturerData)
                )
            }
        }
        #expect(heard[0] == heard[1])
        #expect(heard[0].joined().count == 30)
        #expect(Set(heard[0].joined()).count == 3)
    }

    @Test func `a connected peripheral is silent, and another gateway's Connect times out`() throws {
        var bench = try Self.site("at: [20, 0]")
        scan(&bench)
        bench.call(Bench.device, "Connect")
        #expect(bench.wait(.milliseconds(300)).contains("0: (connected hci0)"))
        bench.gateway = 1
        #expect(bench.call(Bench.device, "Connect") == [])
        let lines = bench.wait(.seconds(39))
        #expect(!lines.contains { $0.hasPrefix("1: ") })
        #expect(bench.wait(.seconds(2)).contains { $0.hasPrefix("1: fail") && $0.contains("le-connection-abort") })
    }

    @Test func `the end of a link starts another gateway's pending Connect`() throws {
        var bench = try Self.site("at: [20, 0]")
        scan(&bench)
        bench.call(Bench.device, "Connect")
        bench.wait(.milliseconds(300))
        bench.gateway = 1
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(5))
        // The order arrives at the gateway without the link.
        #expect(try bench.order(.drop("p")).first == "0: (disconnected remote)")
        #expect(bench.wait(.milliseconds(300)).contains("1: (connected hci0)"))
    }

    @Test func `of two simultaneous attempts one succeeds, and the other waits`() throws {
        var bench = try Self.site("at: [20, 0]")
        scan(&bench)
        for gateway in 0...1 {
            bench.gateway = gateway
            bench.call(Bench.device, "Connect")
        }
        let lines = bench.wait(.seconds(1))
        #expect(lines.filter { $0.contains("(connected") } == ["0: (connected hci0)"])
    }

    @Test func `a walking peripheral is lost by one gateway and connected by the next`() throws {
        var bench = try Self.site("path: {0s: [0, 0], 40s: [40, 0]}")
        bench.scan()
        bench.call(Bench.device, "Connect")
        bench.wait(.seconds(15))
        bench.gateway = 1
        bench.scan()
        #expect(bench.site.gateways[1].world.devices.isEmpty)
        // 31.6 m from west, which is lost after the supervision timeout of 420 ms.
        let before = bench.wait(.milliseconds(16_300))
        #expect(before.last?.hasPrefix("0: (2a37 #") == true)
        #expect(!before.contains { $0.contains("disconnected") })
        let after = bench.wait(.milliseconds(900))
        #expect(after.contains("0: (disconnected timeout)"))
        #expect(after.contains("0: \(Self.dev) ServicesResolved=false Connected=false"))
        bench.wait(.milliseconds(400))
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.seconds(1))
        #expect(lines.contains("1: (connected hci0)"))
        #expect(lines.contains { $0.hasPrefix("1: (2a37 #") })
    }

    @Test func `a link outlasts a short loss of contact, and its notifications continue`() throws {
        // 33 m away for less than the supervision timeout.
        var bench = try Self.site("path: {0s: [30, 0], 1s: [30, 0], 1100ms: [33, 0], 1300ms: [33, 0], 1400ms: [30, 0]}")
        bench.scan()
        bench.call(Bench.device, "Connect")
        bench.wait(.milliseconds(800))
        #expect(bench.wait(.milliseconds(200)).isEmpty)
        let lines = (0..<10).flatMap { _ in bench.wait(.milliseconds(100)) }
        #expect(!lines.contains { $0.contains("disconnected") })
        #expect((8...10).contains(lines.count { $0.contains("(2a37") }), "\(lines)")
    }

    @Test func `Connect to a peripheral out of reach times out, and one that comes back is connected`() throws {
        var bench = try Self.site(
            "path: {0s: [1, 0], 1s: [1, 0], 2s: [200, 0], 30s: [200, 0], 31s: [1, 0], 32s: [200, 0]}"
        )
        bench.scan()
        bench.wait(.seconds(3))
        bench.call(Bench.device, "Connect")
        #expect(!bench.wait(.seconds(26)).contains { $0.contains("(connected") })
        #expect(bench.wait(.seconds(3)).contains("0: (connected hci0)"))
        bench.wait(.seconds(2))
        bench.call(Bench.device, "Connect")
        let lines = bench.wait(.seconds(41))
        #expect(lines.contains { $0.hasPrefix("0: fail") && $0.contains("le-connection-abort") })
    }

    @Test func `the status names the gateway of a link`() throws {
        var bench = try Self.site("at: [20, 0]")
        scan(&bench)
        bench.gateway = 1
        bench.call(Bench.device, "Connect")
        bench.wait(.milliseconds(300))
        let status = bench.site.status.elements?.first
        #expect(status?["adapter"]?.string == "east/hci0")
        #expect(status?["resolved"]?.bool == true)
    }

    @Test func `a crash of one gateway's bluetoothd does not concern another`() throws {
        var bench = try Self.site("at: [20, 0]")
        scan(&bench)
        bench.gateway = 1
        bench.call(Bench.device, "Connect")
        bench.wait(.milliseconds(300))
        bench.gateway = 0
        #expect(try bench.order(.restartDaemon(isGraceful: false, downtime: .seconds(1))) == ["0: stop"])
        let lines = bench.wait(.seconds(4))
        #expect(lines.contains("0: start"))
        #expect(lines.contains { $0.hasPrefix("1: (2a37 #") })
        #expect(!lines.contains { $0.hasPrefix("1: ") && $0.contains("disconnected") })
    }

    @Test func `equal seeds give equal runs, and others do not`() throws {
        let runs = try [1, 1, 2].map { seed in
            var bench = try Self.site(
                "path: {0s: [0, 0], 30s: [40, 0], 60s: [0, 0]}",
                air: "seed: \(seed), noise: 4, bodies: {attenuation: 10}"
            )
            scan(&bench)
            bench.call(Bench.device, "Connect")
            return bench.wait(.seconds(90))
        }
        #expect(runs[0] == runs[1])
        #expect(runs[0] != runs[2])
        #expect(runs[0].count > 100)
    }

    @Test func `a scenario without gateways has no positions and no timers for them`() throws {
        let bench = try Bench(kind: "heart-rate")
        #expect(bench.site.nextDeadline == nil)
        #expect(bench.site.gateways.count == 1)
        #expect(bench.bluetoothd.world.air.field.strength(DeviceKey(adapter: 0, peripheral: 0), at: .zero) == nil)
    }
}

extension Effect {
    /// The manufacturer data of a signal.
    fileprivate var manufacturerData: DBusValue? {
        guard case .changed(_, _, let properties, _) = self else { return nil }
        return properties.first { $0.name == "ManufacturerData" }?.value
    }
}
