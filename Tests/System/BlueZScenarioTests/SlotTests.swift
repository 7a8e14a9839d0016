import BlueZKit
import Foundation
import TestKit
import Testing

/// An adapter with fewer link slots than devices.
@Suite(.timeLimit(.minutes(12)), .serialized) struct SlotTests {
    private struct Status: Decodable {
        struct Adapter: Decodable {
            let links: Int
            let slots: Int?
        }

        let adapters: [Adapter]
    }

    @Test func `the adapter's link limit is learned and a waiting device gets the freed slot`()
        async throws
    {
        let gateway = try await Gateway(
            TestPeripherals(.init("heart-rate", "strap", count: 6, "rate: 10"), adapter: "slots: 4")
        )
        let daemon = try gateway.startDaemon()
        try await eventually { try await ready(gateway).count == 4 }
        try await eventually { try await status(gateway).adapters.first?.slots == 4 }
        #expect(try await status(gateway).adapters.first?.links == 4)
        let first = try #require(try await ready(gateway).first)
        _ = try await gateway.command("disconnect", first)
        try await eventually { try await ready(gateway).count == 5 }
        try await gateway.end(daemon)
    }

    /// The names of the devices that have been ready.
    private func ready(_ gateway: Gateway) async throws -> [String] {
        var names: [String] = []
        for (device, _) in gateway.peripherals.devices where try await gateway.readyCount(device) > 0 {
            names.append(device)
        }
        return names
    }

    private func status(_ gateway: Gateway) async throws -> Status {
        let (_, text) = try await gateway.command("status", "--json")
        return try JSONDecoder().decode(Status.self, from: Data(text.utf8))
    }
}
