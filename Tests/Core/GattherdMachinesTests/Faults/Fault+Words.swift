// What the table of faults says.
extension Fault {
    /// The longest time from the fault's end until all is well, in whichever state it struck.
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
        case .connectHangs: "no attempt succeeds or fails by itself for 100 s"
        case .connectUnanswered: "`Connect` is never answered for 100 s, not even with a timeout"
        case .servicesNeverResolve: "`ServicesResolved` does not come for 100 s"
        case .servicesMissing: "the services lack those that the profile requires, for 100 s"
        case .subscriptionRefused: "`StartNotify` is refused for 100 s"
        case .subscriptionEndsAtOnce: "the notification socket closes at once, for 100 s"
        case .staleObjects: "GATT objects are stale for 100 s"
        case .sessionUnanswered: "a GATT operation is never answered, not even with a timeout"
        case .disconnectUnanswered: "`Disconnect` is not answered for 100 s"
        case .flapping: "the link drops ten times a minute"
        case .adapterOff: "the adapter is off for 20 s"
        case .adapterUnplugged: "the adapter is unplugged for 20 s"
        case .adapterFull: "another program takes the last slot for 100 s"
        case .inProgressWedge: "every `Connect` ends in `org.bluez.Error.InProgress` until a new client comes"
        case .controllerHangs: "the controller answers nothing until it is switched off and on"
        case .controllerRefuses: "every `Connect` fails at once until the controller is switched off and on"
        case .discoveryDeaf: "the scan hears nothing until the controller is switched off and on"
        case .scansRefused: "no scan can be started for 100 s, and the device is not known"
        case .daemonRestarted: "bluetoothd is killed and restarted"
        case .daemonAway: "bluetoothd is away for 20 s"
        case .otherProgramConnects: "another program has the device for 100 s, then drops it"
        case .otherProgramDisconnects: "another program disconnects the device"
        case .heldAndReleased: "a person disconnects the device, and connects it 20 s later"
        case .reconfigured: "a reload brings another profile for the device"
        case .dismissedAndEnrolled: "a reload takes the device away, and another one brings it back 20 s later"
        }
    }

    /// What gattherd does about it.
    var remedy: String {
        switch self {
        case .linkLost, .otherProgramDisconnects: "connects again after a short pause"
        case .outOfRange: "scans until it is heard, then connects"
        case .objectRemoved: "scans, then connects"
        case .servicesChanged: "reads the table anew on the same link, when bluetoothd is done with it"
        case .connectAborts, .connectHangs: "tries again with growing pauses, others first"
        case .connectUnanswered, .sessionUnanswered, .disconnectUnanswered: "goes on after a limit of its own"
        case .servicesNeverResolve, .subscriptionRefused, .staleObjects:
            "ends the link, tries again with growing pauses"
        case .servicesMissing: "says so, tries again every 5 min"
        case .subscriptionEndsAtOnce: "subscribes once more, then ends the link and backs off"
        case .flapping: "pauses grow: a short time of readiness forgives nothing"
        case .adapterOff, .adapterUnplugged, .daemonRestarted, .daemonAway: "connects when it is back"
        case .adapterFull: "tries again when a slot is free"
        case .inProgressWedge: "scans anew, then comes back as a new client"
        case .controllerHangs, .controllerRefuses, .discoveryDeaf:
            "scans anew, comes back as a new client, then switches it off and on"
        case .scansRefused: "tries to scan again with growing pauses"
        case .otherProgramConnects: "uses the link that is there"
        case .heldAndReleased, .dismissedAndEnrolled: "stays away until then"
        case .reconfigured: "begins a new session on the same link"
        }
    }
}
