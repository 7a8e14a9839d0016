import GattherdBlueZ
import Observation

/// The screen of a terminal program: its text and its one action follow from the models alone.
@MainActor @Observable public final class DemoScreen {
    /// The action of the Enter key.
    enum Action: String {
        case scan
        case connect
        case cancel
        case disconnect
    }

    let model: CentralModel
    /// The peripheral that the user chose.
    private(set) var selection: PeripheralModel?
    private(set) var beatsPerMinute: Int?

    init(_ central: Central) {
        model = CentralModel(central)
    }

    /// The action that makes sense now; `nil` if there is none.
    var action: Action? {
        guard model.state == .poweredOn else { return nil }
        guard let selection else { return model.isScanning ? nil : .scan }
        return switch selection.connectionState {
        case .ready: .disconnect
        case .connecting, .connected: .cancel
        case .disconnecting: nil
        case .disconnected: selection.isReconnecting ? .cancel : .connect
        }
    }

    var text: String {
        let found = model.discoveries.enumerated().map { index, advertisement in
            "\(index + 1)  \(advertisement.address)  \(advertisement.name ?? "-")"
        }
        let help = (action.map { ["[Enter] \($0.rawValue)"] } ?? []) + ["[number] choose", "[q] quit"]
        return (["Bluetooth: \(model.state)"] + found + details + [help.joined(separator: "  ")])
            .joined(separator: "\n")
    }

    private var details: [String] {
        guard let selection else { return [] }
        let state = "\(selection.name ?? "\(selection.peripheral.address)"): \(selection.connectionState)"
        return [state]
            + (selection.connectionError.map { ["  last error: \($0)"] } ?? [])
            + (beatsPerMinute.map { ["  \($0) bpm"] } ?? [])
    }

    /// Shows each new text until the task is cancelled.
    func present(_ show: @MainActor (String) -> Void) async {
        for await text in Observations({ [self] in text }) { show(text) }
    }

    /// Handles one line of input.
    func handle(_ line: String) async {
        if let number = Int(line), model.discoveries.indices.contains(number - 1) {
            await follow(model.model(of: model.discoveries[number - 1].peripheral))
        } else if line.isEmpty, let action {
            await perform(action)
        }
    }

    private func perform(_ action: Action) async {
        switch action {
        case .scan: await model.scan(timeout: .seconds(10))
        case .connect: selection?.peripheral.keepConnected()
        case .cancel, .disconnect: try? await selection?.peripheral.disconnect()
        }
    }

    /// Shows a peripheral and its heart rate until another one is chosen.
    private func follow(_ chosen: PeripheralModel) async {
        (selection, beatsPerMinute) = (chosen, nil)
        for await event in chosen.peripheral.lastingNotifications(of: HeartRateMeasurement.self) {
            guard selection === chosen else { return }
            if case .value(let beat) = event { beatsPerMinute = beat.beatsPerMinute }
            if case .interrupted = event { beatsPerMinute = nil }
        }
    }
}

/// Runs the demo until the line `q`, or until `input` ends.
@MainActor public func runDemo(
    _ central: Central,
    input: AsyncStream<String>,
    show: @escaping @MainActor (String) -> Void
) async {
    let screen = DemoScreen(central)
    await withDiscardingTaskGroup { group in
        group.addTask { await screen.model.follow() }
        group.addTask { await screen.present(show) }
        for await line in input {
            guard line != "q" else { break }
            group.addTask { await screen.handle(line) }
        }
        group.cancelAll()
    }
}
