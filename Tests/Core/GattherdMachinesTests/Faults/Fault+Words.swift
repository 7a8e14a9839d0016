// The text and the limits of the table of faults.
extension Fault {
    /// The longest time from the fault's end until all devices have recovered, for any state at its start.
    var limit: Duration {
        switch self {
        case .linkLost, .outOfRange, .objectRemoved, .servicesChanged, .adapterOff, .adapterUnplugged, .adapterFull,
            .daemonRestarted, .daemonAway, .otherProgramConnects, .otherProgramDisconnects, .heldAndReleased,
            .reconfigured,
            .dismissedAndEnrolled:
            .seconds(10)
        case .connectAborts, .connectHangs, .connectUnanswered, .servicesNeverResolve, .subscriptionRefused,
            .subscriptionEndsAtOnce, .staleObjects, .disconnectUnanswered, .flapping, .scansRefused:
            .seconds(90)
        case .inProgressWedge, .controllerRefuses: .seconds(150)
        case .controllerHangs, .discoveryDeaf, .sessionUnanswered: .seconds(240)
        case .servicesMissing: .seconds(310)
        }
    }

    var words: String {
        switch self {
        case .linkLost: "the link is lost"
        case .outOfRange: "out of range for 100 s"
        case .objectRemoved: "BlueZ removes the device's object"
        case .servicesChanged: "the services change while the link is up"
        case .connectAborts: "`le-connection-abort-by-local` for 100 s"
        case .connectHangs: "attempts neither succeed nor fail for 100 s"
        case .connectUnanswered: "`Connect` gets no answer for 100 s, not even a timeout"
        case .servicesNeverResolve: "`ServicesResolved` does not come for 100 s"
        case .servicesMissing: "services required by the profile are missing for 100 s"
        case .subscriptionRefused: "`StartNotify` is refused for 100 s"
        case .subscriptionEndsAtOnce: "the notification socket closes at once for 100 s"
        case .staleObjects: "GATT objects are stale for 100 s"
        case .sessionUnanswered: "a GATT operation gets no answer, not even a timeout"
        case .disconnectUnanswered: "`Disconnect` is not answered for 100 s"
        case .flapping: "the link drops ten times a minute"
        case .adapterOff: "the adapter is off for 20 s"
        case .adapterUnplugged: "the adapter is unplugged for 20 s"
        case .adapterFull: "another program takes the last slot for 100 s"
        case .inProgressWedge:
            "every `Connect` fails with `org.bluez.Error.InProgress` until gattherd reconnects to the bus"
        case .controllerHangs: "the controller does not respond until it is power-cycled"
        case .controllerRefuses: "every `Connect` fails at once until the controller is power-cycled"
        case .discoveryDeaf: "the scan hears nothing until the controller is power-cycled"
        case .scansRefused: "no scan can be started for 100 s, and the device is not known"
        case .daemonRestarted: "bluetoothd is killed and restarted"
        case .daemonAway: "bluetoothd is away for 20 s"
        case .otherProgramConnects: "another program holds the link for 100 s, then drops it"
        case .otherProgramDisconnects: "another program disconnects the device"
        case .heldAndReleased: "a user disconnects the device and connects it 20 s later"
        case .reconfigured: "a reload changes the device's profile"
        case .dismissedAndEnrolled: "a reload removes the device, and another one adds it 20 s later"
        }
    }

    /// The reaction of gattherd.
    var remedy: String {
        switch self {
        case .linkLost, .otherProgramDisconnects: "reconnects after a short pause"
        case .outOfRange: "scans until it is heard, then connects"
        case .objectRemoved: "scans, then connects"
        case .servicesChanged: "reads the GATT table again on the same link, once bluetoothd has updated it"
        case .connectAborts, .connectHangs: "retries with growing pauses, after other devices"
        case .connectUnanswered, .sessionUnanswered, .disconnectUnanswered: "continues after its own timeout"
        case .servicesNeverResolve, .subscriptionRefused, .staleObjects:
            "ends the link, retries with growing pauses"
        case .servicesMissing: "reports the mismatch, retries every 5 min"
        case .subscriptionEndsAtOnce: "subscribes once more, then ends the link and backs off"
        case .flapping: "retries with growing pauses, which short connections do not reset"
        case .adapterOff, .adapterUnplugged, .daemonRestarted, .daemonAway: "connects when it is back"
        case .adapterFull: "retries when a slot is free"
        case .inProgressWedge: "restarts the scan, then reconnects to the bus"
        case .controllerHangs, .controllerRefuses, .discoveryDeaf:
            "restarts the scan, reconnects to the bus, then power-cycles the adapter"
        case .scansRefused: "retries the scan with growing pauses"
        case .otherProgramConnects: "uses the existing link"
        case .heldAndReleased, .dismissedAndEnrolled: "stays disconnected until then"
        case .reconfigured: "opens a new session on the same link"
        }
    }
}
