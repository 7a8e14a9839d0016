import GattherdDBus
import GattherdGATT

/// Translation of orders to commands of the state machine.
struct OrderResolver {
    private let adapters: ArraySlice<SimulatedAdapter>
    private let peripherals: [SimulatedPeripheral]

    init(_ world: World) {
        adapters = world.adapters
        peripherals = world.air.peripherals
    }

    /// Returns the command with the indices of the named peripherals and adapters.
    ///
    /// - Throws: ``SimulatorOrderError`` if the order does not fit the scenario.
    func command(for order: SimulatorOrder) throws(SimulatorOrderError) -> ControlCommand {
        switch order {
        case .drop(let name): .drop(try linked(name))
        case .keepLink(let name): .keepLink(try linked(name))
        case .vanish(let name): .vanish(try peripheral(name))
        case .appear(let name): .appear(try peripheral(name))
        case .silence(let name, let silence): .silence(try peripheral(name), silence)
        case .failNext(let target, let method, let error, let times):
            try failure(target, method, error, times)
        case .setPowered(let name, let isOn): .setPower(adapter: try adapter(name), isOn)
        case .unplug(let name): .unplug(adapter: try adapter(name))
        case .plug(let name): .plug(adapter: try adapter(name))
        case .restartDaemon(let isGraceful, let downtime):
            .restartDaemon(isGraceful: isGraceful, downtime: downtime)
        case .notify(let name, let uuid, let octets): try notification(name, uuid, octets)
        case .setRate(let name, let rate): .setRate(try peripheral(name), try checked(rate))
        case .forget(let name): .forget(try peripheral(name))
        case .slow(let name, let slowness): .slow(try peripheral(name), slowness)
        case .refuse(let name, let times): .refuse(try peripheral(name), times: max(0, times))
        case .burst(let name, let count): .burst(try linked(name), try checked(count: count))
        case .advertise(let name, let isOn): .advertise(try peripheral(name), isOn)
        case .setClock(let name, let error): .setClock(try recording(name), error: error)
        case .resetRecords(let name): .resetRecords(try recording(name))
        case .hang(let name, let isHung): .hang(adapter: try adapter(name), isHung)
        case .changeServices(let name, let hidden): .changeServices(try peripheral(name), hiding: Set(hidden))
        case .hideServices(let name, let hidden): .hideServices(try peripheral(name), Set(hidden))
        }
    }

    private func peripheral(_ name: String) throws(SimulatorOrderError) -> Int {
        let address = BluetoothAddress(name)
        guard let index = peripherals.firstIndex(where: { $0.spec.name == name || $0.spec.address == address }) else {
            throw SimulatorOrderError("there is no peripheral '\(name)' in the scenario")
        }
        return index
    }

    private func recording(_ name: String) throws(SimulatorOrderError) -> Int {
        let index = try peripheral(name)
        guard peripherals[index].records != nil else { throw SimulatorOrderError("'\(name)' stores no records") }
        return index
    }

    private func linked(_ name: String) throws(SimulatorOrderError) -> Int {
        let index = try peripheral(name)
        guard peripherals[index].link != nil else { throw SimulatorOrderError("'\(name)' is not connected") }
        return index
    }

    private func adapter(_ name: String) throws(SimulatorOrderError) -> Int {
        guard let index = adapters.firstIndex(where: { $0.spec.name == name }) else {
            throw SimulatorOrderError("there is no adapter '\(name)' in the scenario")
        }
        return index
    }

    private func checked(_ rate: Double) throws(SimulatorOrderError) -> Double {
        guard ScenarioValue.isRate(rate) else {
            throw SimulatorOrderError("\(rate) is not \(ScenarioValue.rateWords)")
        }
        return rate
    }

    private func checked(count: Int) throws(SimulatorOrderError) -> Int {
        guard (0...10_000).contains(count) else {
            throw SimulatorOrderError("\(count) is not a number of notifications from 0 to 10000")
        }
        return count
    }

    private func notification(
        _ name: String,
        _ uuid: BluetoothUUID,
        _ octets: [UInt8]
    ) throws(SimulatorOrderError) -> ControlCommand {
        let index = try linked(name)
        guard let place = peripherals[index].characteristics.firstIndex(where: { $0.spec.uuid == uuid }) else {
            throw SimulatorOrderError("'\(name)' has no characteristic \(uuid)")
        }
        guard octets.count <= 512 else { throw SimulatorOrderError("a value has 512 bytes at most") }
        return .notify(index, characteristic: place, octets)
    }

    private func failure(
        _ target: String,
        _ method: String,
        _ error: String,
        _ times: Int
    ) throws(SimulatorOrderError) -> ControlCommand {
        let fault = try fault(error, of: method)
        if let index = adapters.firstIndex(where: { $0.spec.name == target }) {
            return .failAdapter(index, method: method, fault, times: times)
        }
        return .failDevice(try peripheral(target), method: method, fault, times: times)
    }

    private func fault(_ text: String, of method: String) throws(SimulatorOrderError) -> FaultList.Fault {
        if text == "no-reply" { return .noReply }
        if text.isEmpty { return .error(method == "Connect" ? .connectAborted : .att(0x0E)) }
        if text.hasPrefix("0x") {
            guard let code = UInt8(text.dropFirst(2), radix: 16) else {
                throw SimulatorOrderError("'\(text)' is not an ATT error code; write for example 0x0d")
            }
            return .error(.att(code))
        }
        let parts = text.split(separator: ":", maxSplits: 1)
        let name = String(parts.first ?? "")
        let message = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        guard Self.isErrorName(name) else { throw SimulatorOrderError("'\(name)' is not the name of an error") }
        return .error(name.contains(".") ? DBusError(name: name, message: message) : .bluez(name, message))
    }

    /// D-Bus Specification, "Valid Names", with or without dots.
    private static func isErrorName(_ name: String) -> Bool {
        name.utf8.count < 200
            && name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { part in
                part.first?.isNumber == false
                    && part.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
            }
    }
}
