import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// Removed devices: a gateway adds and removes devices for years, and no state of removed ones may stay.
@Suite(.timeLimit(.minutes(1))) struct ForgettingTests {
    private static var profile: OctetProfile {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.controls = [ControlDescriptor(name: "power", kind: .integer(0...255), characteristic: 0xBBBB)]
        return profile
    }

    private let remote = RemoteCharacteristic(
        peripheral: PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2)),
        service: 0xAAAA,
        uuid: 0xBBBB,
        handle: "one",
        properties: [.notify, .write]
    )

    private func stream(_ catalogue: StreamCatalogue, of device: String) -> StreamDefinition {
        let planned = ProfileAssignment.Stream(
            profile: Self.profile,
            index: 0,
            remote: remote,
            name: "one",
            isFirst: true
        )
        return catalogue.stream(device: device, planned)
    }

    @Test func `only the streams of the removed device are removed`() {
        let catalogue = StreamCatalogue()
        let (gone, other) = (stream(catalogue, of: "gone"), stream(catalogue, of: "other"))
        catalogue.echo(device: "gone", stream: "one").withLock { $0 = .integer(1) }
        catalogue.echo(device: "other", stream: "one").withLock { $0 = .integer(2) }
        catalogue.remove(device: "gone")
        #expect(stream(catalogue, of: "gone") !== gone)
        #expect(stream(catalogue, of: "other") === other)
        #expect(catalogue.removeEcho(device: "gone", stream: "one") == nil)
        #expect(catalogue.removeEcho(device: "other", stream: "one") == .integer(2))
        #expect(catalogue.removeEcho(device: "other", stream: "one") == nil, "it is taken once")
    }

    @Test func `a request for a control of a removed device is answered before the control is removed`() async {
        var run = opened()
        let answer = await withCheckedContinuation { caller in
            let request = ControlRequest(device: "dial", control: "power", value: .integer(5))
            perform(run.handle(.set(request, caller), at: .zero))
            perform(run.handle(.remove(device: "dial"), at: .zero))
            perform(run.handle(.event(ControlKey(device: "dial", control: "power"), .written(1)), at: .zero))
        }
        #expect(answer == .success(.integer(5)))
        #expect(await isUnknown("dial", to: &run))
    }

    @Test func `a returning device has its controls again`() async {
        var run = opened()
        perform(run.handle(.remove(device: "dial"), at: .zero))
        #expect(await isUnknown("dial", to: &run))
        perform(run.handle(.open(device: "dial", controls), at: .zero))
        #expect(await !isUnknown("dial", to: &run))
    }

    @Test func `only the removed device's bond state is removed`() {
        let (gone, other) = (
            remote.peripheral, PeripheralID(adapter: remote.peripheral.adapter, address: BluetoothAddress(value: 3))
        )
        let bonds = BondKeeper(
            configuredDevices: ConfiguredDevices([], profiles: []),
            recorder: EventRecorder(now: { Timestamp(microseconds: 0) }),
            log: .silent
        )
        for link in [gone, other] { bonds.requestsBegan(on: link, pairedFirst: false) }
        bonds.remove(gone.address)
        #expect(Array(bonds.sessionBonds.state.keys) == [other])
    }

    private var controls: [ProfileAssignment.Control] {
        [ProfileAssignment.Control(profile: Self.profile, index: 0, remote: remote, exchange: nil)]
    }

    private func opened() -> ControlWrites {
        var run = ControlWrites(echo: { _, _ in nil })
        perform(run.handle(.open(device: "dial", controls), at: .zero))
        return run
    }

    private func perform(_ actions: [ControlWrites.Action]) {
        for case .answer(let caller, let answer) in actions { caller.resume(returning: answer) }
    }

    /// Returns true if nothing is known of the device, rather than that it lacks the control.
    private func isUnknown(_ device: String, to run: inout ControlWrites) async -> Bool {
        let answer = await withCheckedContinuation { caller in
            let request = ControlRequest(device: device, control: "no such", value: .integer(5))
            perform(run.handle(.set(request, caller), at: .zero))
        }
        return answer == .failure(.notReady(device: device))
    }
}
