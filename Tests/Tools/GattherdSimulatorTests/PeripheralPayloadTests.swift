import Foundation
import GattherdGATT
import TestKit
import Testing

@testable import GattherdSimulator

/// The peripherals of `Tests/RealBlueZ` send the same values as the simulator's, so that one checker serves both.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["GATTHERD_STACK"] == "real"))
struct PeripheralPayloadTests {
    private static let scenario = """
        peripherals:
          - {name: plain, kind: heart-rate, address: "C0:FF:EE:00:00:01"}
          - {name: wide, kind: heart-rate, address: "C0:FF:EE:00:00:02", format: u16, contact: no}
          - {name: full, kind: heart-rate, address: "C0:FF:EE:00:00:03", energy: true, rr: 9, contact: yes}
          - {name: all, kind: heart-rate, address: "C0:FF:EE:00:00:04", format: u16, energy: true, rr: 1}
          - {name: bad, kind: malformed-heart-rate, address: "C0:FF:EE:00:00:05"}
          - {name: dial, kind: number-service, address: "C0:FF:EE:00:00:06", value: 255, rate: 1}
          - {name: cell, kind: battery, address: "C0:FF:EE:00:00:07", rate: 1}
          - {name: weather, kind: environmental, address: "C0:FF:EE:00:00:08"}
          - {name: fever, kind: thermometer, address: "C0:FF:EE:00:00:09"}
          - name: odd
            kind: custom
            address: C0:FF:EE:00:00:0A
            services: [{uuid: fff0, characteristics: [{uuid: fff1, properties: [notify], notify: ["01 02", "", "ff"]}]}]
        """
    private static let numbers: [UInt64] =
        Array(0...130) + [499, 500, 5_000, 5_001, 11_999, 65_535, 65_536, 999_999, 1_000_000, 123_456_789]

    @Test(.timeLimit(.minutes(1)))
    func `each notification has the same bytes as the simulator's`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Self.scenario, to: "scenario.yaml")
        let words = ["-m", "peripherals", "payloads", file] + Self.numbers.map(String.init)
        let (status, output) = try await Programs.run("python3", words)
        #expect(status == 0)
        #expect(output.split(separator: "\n").map(String.init) == (try expected()))
    }

    private func expected() throws -> [String] {
        var lines: [String] = []
        for peripheral in try Scenario(Self.scenario, file: "scenario.yaml").peripherals {
            for spec in peripheral.services.flatMap(\.characteristics) where spec.source != .stored {
                lines += Self.numbers.map { number in
                    let payload = spec.source.payload(number, stored: spec.value)
                    return "\(peripheral.name) \(spec.uuid) \(number) \(Hexadecimal.text(payload.span))"
                }
            }
        }
        return lines
    }
}
