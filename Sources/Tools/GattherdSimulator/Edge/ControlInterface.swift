import GattherdDBus
import GattherdGATT

/// The D-Bus interface `org.gattherd.Simulator1`, by which tests and people cause faults.
package enum ControlInterface {
    package static let busName = "org.gattherd.Simulator"
    package static let path = "/org/gattherd/simulator"
    package static let name = "org.gattherd.Simulator1"

    static let failedName = name + ".Error.Failed"
    static let invalidArgumentsName = name + ".Error.InvalidArguments"

    /// Parses a call into an order.
    ///
    /// - Throws: UnknownMethod, or InvalidArguments with the reason.
    static func order(_ member: String, _ arguments: [DBusValue]) throws(DBusError) -> SimulatorOrder {
        let texts = arguments.map { $0.string ?? "" }
        switch (member, arguments.map(\.signature).joined()) {
        case ("Drop", "s"): return .drop(texts[0])
        case ("KeepLink", "s"): return .keepLink(texts[0])
        case ("Vanish", "s"): return .vanish(texts[0])
        case ("Appear", "s"): return .appear(texts[0])
        case ("Forget", "s"): return .forget(texts[0])
        case ("Slow", "su"): return .slow(texts[0], .milliseconds(arguments[1].int ?? 0))
        case ("Refuse", "su"): return .refuse(texts[0], times: arguments[1].int ?? 0)
        case ("Burst", "su"): return .burst(texts[0], arguments[1].int ?? 0)
        case ("Advertise", "sb"): return .advertise(texts[0], arguments[1].bool ?? false)
        case ("SetClock", "sd"): return .setClock(texts[0], error: .seconds(max(-1e10, min(1e10, rate(arguments[1])))))
        case ("ResetRecords", "s"): return .resetRecords(texts[0])
        case ("Hang", "sb"): return .hang(adapter: texts[0], arguments[1].bool ?? false)
        case ("Silence", "ss"): return .silence(texts[0], try silence(texts[1]))
        case ("FailNext", "sssu"):
            return .failNext(
                target: texts[0],
                method: texts[1],
                error: texts[2],
                times: arguments[3].int ?? 0
            )
        case ("SetPowered", "sb"): return .setPowered(adapter: texts[0], arguments[1].bool ?? false)
        case ("Unplug", "s"): return .unplug(adapter: texts[0])
        case ("Plug", "s"): return .plug(adapter: texts[0])
        case ("RestartDaemon", "bu"):
            let downtime = Duration.milliseconds(arguments[1].int ?? 0)
            return .restartDaemon(isGraceful: arguments[0].bool ?? false, downtime: downtime)
        case ("Notify", "ssay"):
            return .notify(texts[0], characteristic: try uuid(texts[1]), arguments[2].bytes ?? [])
        case ("SetRate", "sd"): return .setRate(texts[0], rate(arguments[1]))
        case ("ChangeServices", "sas"): return .changeServices(texts[0], without: try uuids(arguments[1]))
        case ("HideServices", "sas"): return .hideServices(texts[0], try uuids(arguments[1]))
        default: throw unknown(member, arguments)
        }
    }

    private static func rate(_ value: DBusValue) -> Double {
        guard case .double(let rate) = value else { return 0 }
        return rate
    }

    private static func unknown(_ member: String, _ arguments: [DBusValue]) -> DBusError {
        DBusError(
            name: "org.freedesktop.DBus.Error.UnknownMethod",
            message: "there is no \(name).\(member)(\(arguments.map(\.signature).joined()))"
        )
    }

    private static func silence(_ word: String) throws(DBusError) -> SimulatorOrder.Silence {
        guard let silence = SimulatorOrder.Silence(rawValue: word) else {
            let words = SimulatorOrder.Silence.allCases.map(\.rawValue).joined(separator: ", ")
            throw DBusError(name: invalidArgumentsName, message: "'\(word)' is not one of \(words)")
        }
        return silence
    }

    private static func uuid(_ text: String) throws(DBusError) -> BluetoothUUID {
        guard let uuid = BluetoothUUID(text) else {
            throw DBusError(name: invalidArgumentsName, message: "'\(text)' is not a UUID")
        }
        return uuid
    }

    private static func uuids(_ list: DBusValue) throws(DBusError) -> [BluetoothUUID] {
        var uuids: [BluetoothUUID] = []
        for text in list.strings ?? [] { uuids.append(try uuid(text)) }
        return uuids
    }

    static let introspection = """
        <node><interface name="\(name)">
        <method name="Drop"><arg name="peripheral" type="s"/></method>
        <method name="KeepLink"><arg name="peripheral" type="s"/></method>
        <method name="Vanish"><arg name="peripheral" type="s"/></method>
        <method name="Appear"><arg name="peripheral" type="s"/></method>
        <method name="Forget"><arg name="peripheral" type="s"/></method>
        <method name="Slow"><arg name="peripheral" type="s"/><arg name="milliseconds" type="u"/></method>
        <method name="Refuse"><arg name="peripheral" type="s"/><arg name="times" type="u"/></method>
        <method name="Burst"><arg name="peripheral" type="s"/><arg name="count" type="u"/></method>
        <method name="Advertise"><arg name="peripheral" type="s"/><arg name="on" type="b"/></method>
        <method name="Hang"><arg name="adapter" type="s"/><arg name="on" type="b"/></method>
        <method name="Silence"><arg name="peripheral" type="s"/><arg name="what" type="s"/></method>
        <method name="FailNext"><arg name="target" type="s"/><arg name="method" type="s"/>\
        <arg name="error" type="s"/><arg name="times" type="u"/></method>
        <method name="SetPowered"><arg name="adapter" type="s"/><arg name="powered" type="b"/></method>
        <method name="Unplug"><arg name="adapter" type="s"/></method>
        <method name="Plug"><arg name="adapter" type="s"/></method>
        <method name="RestartDaemon"><arg name="graceful" type="b"/><arg name="milliseconds" type="u"/></method>
        <method name="Notify"><arg name="peripheral" type="s"/><arg name="characteristic" type="s"/>\
        <arg name="octets" type="ay"/></method>
        <method name="SetRate"><arg name="peripheral" type="s"/><arg name="per_second" type="d"/></method>
        <method name="ChangeServices"><arg name="peripheral" type="s"/><arg name="without" type="as"/></method>
        <method name="HideServices"><arg name="peripheral" type="s"/><arg name="services" type="as"/></method>
        <method name="Status"><arg name="peripherals" type="aa{sv}" direction="out"/></method>
        </interface></node>
        """
}
