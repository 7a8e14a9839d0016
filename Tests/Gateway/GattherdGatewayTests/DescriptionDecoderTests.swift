import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdProfiles
import Testing

@testable import GattherdDaemon

/// The decoders of devices that describe themselves, over the sessions of one link.
struct DescriptionDecoderTests {
    private let subscriptions = LinkSubscriptions()

    /// Returns the streams of a device with one characteristic of this format.
    private func streams(of format: [UInt8]) throws -> [ProfileAssignment.Stream] {
        let described = DescribedCharacteristic(
            service: 0xFFF0,
            uuid: 0xFFF1,
            formats: [format],
            isNotifying: true,
            isReadable: true
        )
        let remote = RemoteCharacteristic(
            peripheral: PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2)),
            service: 0xFFF0,
            uuid: 0xFFF1,
            handle: "one",
            properties: [.read, .notify]
        )
        let made = try #require(PresentationProfile.make(of: [described], taken: []))
        var plan = try ProfileAssignment(candidates: [], areChosen: false, table: [remote])
        try plan.add(made.profile)
        return plan.streams
    }

    @Test func `a changed description gets another decoder, and an unchanged one keeps its decoder`() throws {
        var number = 0
        func next() -> Int {
            number += 1
            return number
        }
        let name = "presentation-format"
        let degrees: [UInt8] = [0x0E, 0xFE, 0x2F, 0x27, 1, 0, 0]
        let tenths: [UInt8] = [0x0E, 0xFF, 0x2F, 0x27, 1, 0, 0]
        var assigned: [[String: Int]] = []
        for format in [degrees, degrees, tenths] {
            assigned.append(subscriptions.assignDecoders(to: try streams(of: format), next: next))
        }
        #expect(assigned == [[name: 1], [name: 1], [name: 2]])
        #expect(subscriptions.removeRetiredDecoders() == [1])
    }
}
