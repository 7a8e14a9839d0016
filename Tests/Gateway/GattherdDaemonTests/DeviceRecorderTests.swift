import GattherdBluetooth
import GattherdLog
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

@Suite(.timeLimit(.minutes(1))) struct DeviceRecorderTests {
    @Test func `the newest record of each device is stored, also at the end`() async {
        let store = FakeStore()
        let recorder = DeviceRecorder(store, log: .silent)
        for (device, profile) in [("strap", "old"), ("bike", "power"), ("strap", "new")] {
            let record = DeviceRecord(device: device, address: "A", profiles: [profile])
            recorder.record(record, seenAt: Timestamp(microseconds: 1))
        }
        recorder.finish()
        await recorder.run()
        #expect(await store.devices.map(\.device) == ["bike", "strap"])
        #expect(await store.devices.map(\.profiles) == [["power"], ["new"]])
    }

    @Test func `devices become ready, and again after a lost link, while the disk hangs`() async throws {
        let bench = try Bench([OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)])
        bench.store.recordsDevices.set(false)
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            bench.central.tell.yield(.disconnected(bench.id))
            await bench.announcer.wait(for: "strap", .ready, times: 2)
            #expect(await bench.store.devices.isEmpty)
            bench.store.recordsDevices.set(true)
        }
        #expect(await bench.store.devices.last?.profiles == ["one"])
    }
}
